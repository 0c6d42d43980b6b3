"""The settings of Codex versions after 0.92: what a resume and a fork keep, the notices of changes, and config/read."""

from __future__ import annotations

from codex_fakes.scripted.methods.both import settings_again
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import merged
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Session
    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread

_SHOWN = 3  # the ignored settings that a warning names; it counts the others
_SYSTEM = "/etc/codex/config.toml"
_THREADS = "max_concurrent_threads_per_session"  # the current name of agents.max_threads
# The settings that stay as they were, each with the member of a request that changes it.
KEPT_BY_FORKS = {"cwd": "cwd", "policy": "approvalPolicy", "sandbox": "sandbox"}
KEPT = {**KEPT_BY_FORKS, "model": "model", "effort": "model", "tier": "serviceTier"}


def settings_of_old(session: Session, thread: Thread, params: dict[str, Any], kept: dict[str, str]) -> Settings:
    """Return the settings of a thread that is loaded a second time, or of its fork.

    The keys of `kept` are the settings that stay as they were, and the values are the members of a request that change them.
    """
    settings = settings_again(session, thread, params, "v2")
    config = params.get("config") or {}
    other_model = "model" in config or "model_reasoning_effort" in config  # a new effort drops the model, and a model the effort
    for name, member in kept.items():
        given = "serviceTier" in params if name == "tier" else params.get(member) is not None
        if not given and not (other_model and member == "model"):
            setattr(settings, name, getattr(thread.settings, name))
    return need_model(session, settings)


def ignored_settings(session: Session, params: dict[str, Any]) -> str | None:
    """Return the warning about settings that the server does not know, in a request's `config` or in config.toml, or None."""
    from codex_fakes.scripted.state.config_forms import unknown_settings

    kinds, sentences = load("forms", session.version)["settings"], session.table["sentences"]
    layers = {
        "session-flags": merged(session.flags, session.given_config(params)),
        f"user ({session.home}/config.toml)": session.user_config,
    }
    found = [(layer, path) for layer, config in layers.items() for path in unknown_settings(config, kinds)]
    if not found:
        return None
    named = [(layer, "".join(map(_shown_sign, ".".join(path)))) for layer, path in found[:_SHOWN]]
    lines = [fill(sentences["ignored"], {"layer": layer, "path": path}) for layer, path in named]
    lines += [fill(sentences["ignored-more"], {"count": len(found) - _SHOWN})] if len(found) > _SHOWN else []
    head = fill(sentences["ignoring"], {"count": len(found), "s": "s" if len(found) > 1 else ""})
    return "\n".join([head, *lines])


def _shown_sign(sign: str) -> str:
    """Return a character of a key in the form of a warning: a control character is escaped."""
    if sign >= " " and not "\x7f" <= sign <= "\x9f":
        return sign
    return {"\t": "\\t", "\n": "\\n", "\r": "\\r"}.get(sign, f"\\u{{{ord(sign):x}}}")


def need_model(session: Session, settings: Settings) -> Settings:
    """Refuse settings with a blank name of the model."""
    if not settings.model.strip():
        raise Refused(session.table["sentences"]["no-model"])
    return settings


def warn_of_settings(session: Session, thread: Thread, ignored: str | None) -> None:
    """Send the warning about ignored settings, if there are any, and one about a service tier that the model does not have."""
    if ignored is not None:
        thread.emit("warning", {"message": ignored})
    settings = thread.settings
    if settings.tier is not None and settings.service_tier() is None:
        values = {"tier": settings.tier, "model": settings.model}
        thread.emit("warning", {"message": fill(session.table["sentences"]["no-tier"], values)})


def warn_of_model(session: Session, thread: Thread) -> None:
    """Send a warning if the latest turn of a loaded thread had another model."""
    if thread.model not in (None, thread.settings.model):
        values = {"old": thread.model, "new": thread.settings.model}
        thread.emit("warning", {"message": fill(session.table["sentences"]["other-model"], values)})


def report_settings(session: Session, thread: Thread, before: Settings) -> None:
    """Send the settings of a thread to a client with the capability experimentalApi, if a request has changed them."""
    shown = _shown(session, thread.settings)
    if session.server.experimental and shown != _shown(session, before):
        session.send({"method": "thread/settings/updated", "params": {"threadId": thread.id, "threadSettings": shown}})


def _shown(session: Session, settings: Settings) -> dict[str, Any]:
    plain = ("cwd", "policy", "model", "provider", "tier", "effort", "summary", "personality")
    values = {
        **{name: getattr(settings, name) for name in plain},
        "sandbox": shown_sandbox(settings),
        "mode": shown_mode(settings)["mode"],
        "modeText": shown_mode(settings)["settings"]["developer_instructions"],
    }
    shown: dict[str, Any] = fill(session.table["shapes"]["settings"], values)
    return shown


def shown_mode(settings: Settings) -> dict[str, Any]:
    """Return the collaboration mode of a thread, with the real server's instructions if the client has given none."""
    text = settings.mode_instructions or _mode_text(settings)
    chosen = {"model": settings.model, "reasoning_effort": settings.effort, "developer_instructions": text}
    return {"mode": "default" if settings.mode == "custom" else settings.mode, "settings": chosen}


def _mode_text(settings: Settings) -> str | None:
    """Return the instructions that the real server has for a mode, or None if the client has chosen no mode."""
    if settings.mode == "custom":
        return None
    texts: dict[str, str] = load("answers", settings.version)["modes"]
    return texts.get(settings.mode)


def shown_sandbox(settings: Settings) -> dict[str, Any]:
    """Return the sandbox in the form of versions after 0.92: a read-only sandbox also has the member `networkAccess`."""
    closed = settings.sandbox["type"] == "readOnly"
    return {**settings.sandbox, "networkAccess": False} if closed else settings.sandbox


def read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/read: return the effective settings, the source of each setting and, if requested, the layers.

    A setting that answers.json does not have is left out, as the real server leaves out a setting that it does not know.
    """
    from codex_fakes.scripted.methods.config import in_order, layers, leaves, version

    if session.file.read_error is not None:
        raise Refused(session.file.read_error, code=-32603)
    known = session.answers["config"]
    settings, tables = known["settings"], known["tables"]
    config = {key: value for key, value in _renamed(session.config).items() if key in settings}
    for table in ("sandbox_workspace_write", "tools"):
        if isinstance(config.get(table), dict):
            config[table] = {key: value for key, value in config[table].items() if key in tables[table]}
    shown = {key: _whole(key, config[key], tables) if key in config else value for key, value in settings.items()}
    if isinstance(config.get("features"), dict):
        shown["features"] = {**settings["features"], **config["features"]}
    if shown["tools"] is not None and isinstance(shown["tools"]["web_search"], bool):
        shown["tools"] = {**shown["tools"], "web_search": None}  # a switch of the web search has no settings of its own
    found = [(_with_profile(layer), given) for layer, given in layers(session)]
    origins = {leaf: layer for layer, given in reversed(found) for leaf in leaves(_renamed(given))}
    result: dict[str, Any] = {"config": shown, "origins": {leaf: origins[leaf] for leaf in leaves(config)}}
    if params.get("includeLayers"):
        system = {"name": {"type": "system", "file": _SYSTEM}, "version": version({}), "config": {}}
        result["layers"] = [*({**layer, "config": in_order(given)} for layer, given in found), system]
    session.answer(request, result)


def _renamed(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with the current name of a setting that has an old name, too."""
    agents = config.get("agents")
    if not isinstance(agents, dict) or "max_threads" not in agents:
        return config
    named = {_THREADS if key == "max_threads" else key: value for key, value in agents.items()}
    return {**config, "agents": named}


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
