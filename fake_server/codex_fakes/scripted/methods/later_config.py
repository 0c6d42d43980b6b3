"""config/read of Codex versions after 0.92: all settings of the configuration, with the members of their tables.

The file config-read.json has the settings, their defaults and the members of the tables, as recorded. A setting that the
file does not have is left out, as the real server leaves out a setting that it does not know.
"""

from __future__ import annotations

from codex_fakes.scripted.methods.config import in_order, layers, leaves, version
from codex_fakes.scripted.state.refused import Refused
from codex_replay.protocol.data_tables import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Session

_SYSTEM = "/etc/codex/config.toml"


def read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/read: return the effective settings, the source of each setting and, if requested, the layers."""
    if session.file.read_error is not None:
        raise Refused(session.file.read_error, code=-32603)
    known = load("config-read", session.version)
    settings, tables = known["settings"], known["tables"]
    config = {key: value for key, value in session.config.items() if key in settings}
    for table in ("sandbox_workspace_write", "tools"):
        if isinstance(config.get(table), dict):
            config[table] = {key: value for key, value in config[table].items() if key in tables[table]}
    shown = {key: _whole(key, config[key], tables) if key in config else value for key, value in settings.items()}
    if isinstance(config.get("features"), dict):
        shown["features"] = {**settings["features"], **config["features"]}
    if shown["tools"] is not None and isinstance(shown["tools"]["web_search"], bool):
        shown["tools"] = {**shown["tools"], "web_search": None}  # a switch of the web search has no settings of its own
    found = [(_with_profile(layer), given) for layer, given in layers(session)]
    origins = {leaf: layer for layer, given in reversed(found) for leaf in leaves(given)}
    result: dict[str, Any] = {"config": shown, "origins": {leaf: origins[leaf] for leaf in leaves(config)}}
    if params.get("includeLayers"):
        system = {"name": {"type": "system", "file": _SYSTEM}, "version": version({}), "config": {}}
        result["layers"] = [*({**layer, "config": in_order(given)} for layer, given in found), system]
    session.answer(request, result)


def _with_profile(layer: dict[str, Any]) -> dict[str, Any]:
    """Return a layer of the configuration; the layer of the user's file names the profile, which is null."""
    name = layer["name"]
    return {**layer, "name": {**name, "profile": None}} if name["type"] == "user" else layer


def _whole(path: str, given: Any, tables: dict[str, Any]) -> Any:
    """Return a table of the configuration with all of its members; a missing member has its default."""
    if not isinstance(given, dict):
        return given
    table = path.rpartition(".")[0]
    members = tables.get(path, tables.get(f"{table}.*", {}))
    if table == "mcp_servers" and "command" in given:
        members = {"args": [], **members}
    return {**members, **{key: _whole(f"{path}.{key}", value, tables) for key, value in given.items()}}
