"""Handle the requests by which a client reads and writes the configuration.

A written value is kept in memory and applies to every later thread until the process ends. The file config.toml is never
changed. The configuration has the layers of the real server: the user's file, and the system's file, which counts as empty.
The version of a layer has the form of the real server: the SHA-256 of the layer as JSON with sorted keys (seen in
recordings of config/read).
"""

from __future__ import annotations

from codex_fakes.scripted.state.config_forms import wrong_setting
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import merged, put, refused_value
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import camel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session

#: The keys that config/read always returns, in its order; the others follow if they are set.
_TOLD = (
    "model", "review_model", "model_context_window", "model_auto_compact_token_limit", "model_provider", "approval_policy",
    "sandbox_mode", "sandbox_workspace_write", "forced_chatgpt_workspace_id", "forced_login_method", "web_search", "tools",
    "profile", "profiles", "instructions", "developer_instructions", "compact_prompt", "model_reasoning_effort",
    "model_reasoning_summary", "model_verbosity", "analytics",
)  # fmt: skip
#: The members that config/read always returns of some tables.
_PROFILE = dict.fromkeys(
    ("model", "model_provider", "approval_policy", "model_reasoning_effort", "model_reasoning_summary", "model_verbosity",
     "web_search", "chatgpt_base_url")
)  # fmt: skip
_TOOLS: dict[str, Any] = {"web_search": None, "view_image": None}
_WRITABLE: dict[str, Any] = {
    "writable_roots": [], "network_access": False, "exclude_tmpdir_env_var": False, "exclude_slash_tmp": False,
}  # fmt: skip
_READ_DEPTH = 80  # tables in each other: the real server writes more, but then cannot read its file
_MOST_NAMES = 100  # of a key path; the real server writes 2,000, and crashes at 50,000
_SYSTEM = "/etc/codex/config.toml"


def version(config: dict[str, Any]) -> str:
    """Return the version string of a layer of the configuration."""
    from hashlib import sha256

    return "sha256:" + sha256(dumps(in_order(config))).hexdigest()


def in_order(value: Any) -> Any:
    """Return a configuration with sorted keys."""
    if type(value) is dict:
        return {key: in_order(value[key]) for key in sorted(value)}
    return [in_order(item) for item in value] if type(value) is list else value


def layers(session: Session) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the name and the configuration of each layer that has settings.

    If several layers have a setting, the first layer counts.
    """
    user = {"name": {"type": "user", "file": f"{session.home}/config.toml"}, "version": version(session.user_config)}
    flags = {"name": {"type": "sessionFlags"}, "version": version(session.flags)}
    return [*([(flags, session.flags)] if session.flags else []), (user, session.user_config)]


def read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/read: return the effective settings, the source of each setting and, if requested, the layers."""
    if session.file.read_error is not None:
        raise Refused(session.file.read_error, code=-32603)
    config = session.config
    report: dict[str, Any] = {key: config.get(key) for key in _TOLD}
    report["profiles"] = {name: _whole(_PROFILE, profile) for name, profile in (config.get("profiles") or {}).items()}
    for name, members in (("tools", _TOOLS), ("sandbox_workspace_write", _WRITABLE)):
        if isinstance(report[name], dict):
            report[name] = _whole(members, report[name])
    report |= {key: value for key, value in config.items() if key not in report}
    known = layers(session)
    origins = {leaf: layer for layer, given in reversed(known) for leaf in leaves(given)}
    result: dict[str, Any] = {"config": report, "origins": {leaf: origins[leaf] for leaf in leaves(config)}}
    if params.get("includeLayers"):
        system = {"name": {"type": "system", "file": _SYSTEM}, "version": version({}), "config": {}}
        result["layers"] = [*({**layer, "config": in_order(given)} for layer, given in known), system]
    session.answer(request, result)


def _whole(members: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return a table of the configuration with all of its members. A member that is missing gets its default."""
    return {**members, **given}


def leaves(config: Any, prefix: str = "") -> list[str]:
    """Return the dotted path of each value in a configuration."""
    found: list[str] = []
    for key, value in config.items() if isinstance(config, dict) else enumerate(config):
        found += leaves(value, f"{prefix}{key}.") if isinstance(value, dict | list) else [f"{prefix}{key}"]
    return found


def value_write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/value/write: apply one edit to the configuration."""
    _write(session, request, params, [params])


def batch_write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/batchWrite: apply all edits, or none of them if one is invalid."""
    _write(session, request, params, params["edits"])


def _write(session: Session, request: Any, params: dict[str, Any], edits: list[dict[str, Any]]) -> None:
    from copy import deepcopy

    if session.file.edit_error is not None:
        raise Refused(session.file.load_error or "", code=-32603)
    file = f"{session.home}/config.toml"
    if params.get("filePath") not in (None, file):
        raise _refused("configLayerReadonly", "Only writes to the user config are allowed")
    wanted = params.get("expectedVersion")
    if wanted is not None and wanted != version(session.user_config):
        text = "Configuration was modified since last read. Fetch latest version and retry."
        raise _refused("configVersionConflict", text)
    config = deepcopy(session.user_config)
    limits = session.table["settings"]
    for edit in edits:
        if (why := limits.get("unwritable", {}).get(edit["keyPath"].partition(".")[0])) is not None:
            raise _refused("configValidationError", why)
        _edit(config, edit["keyPath"], edit["value"], edit["mergeStrategy"])
    if (wrong := wrong_setting(config, load("forms", session.version)["settings"])) is not None:
        raise _refused("configValidationError", f"Invalid configuration: {wrong.text}")
    if (why := refused_value(config, limits)) is not None:
        raise _refused("configValidationError", f"Invalid configuration: {why}")
    session.file.corrected()
    session.write_config(config)
    if _depth(config) > _READ_DEPTH:
        session.file.too_deep(file)
    over = next((found for edit in edits if (found := _overridden(session, edit["keyPath"])) is not None), None)
    status = "ok" if over is None else "okOverridden"
    session.answer(request, {"status": status, "version": version(config), "filePath": file, "overriddenMetadata": over})


def _overridden(session: Session, path: str) -> dict[str, Any] | None:
    """Return the report that the command line overrides a key, or None if the command line does not set the key."""
    value: Any = session.flags
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return None
    layer = {"name": {"type": "sessionFlags"}, "version": version(session.flags)}
    return {"message": "Overridden by session flags", "overridingLayer": layer, "effectiveValue": value}


def _refused(code: str, message: str) -> Refused:
    return Refused(message, data={"config_write_error_code": code})


def _edit(config: dict[str, Any], path: str, value: Any, strategy: str) -> None:
    """Set one key of the configuration, merge a value into it, or (if the value is null) delete it."""
    if all(sign.isspace() and sign not in "\x1c\x1d\x1e\x1f" for sign in path):
        raise _refused("configValidationError", "keyPath must not be empty")
    *tables, last = path.split(".")
    if len(tables) >= _MOST_NAMES:
        text = f"fake-codex keeps no setting under more than {_MOST_NAMES} names, and keyPath has {len(tables) + 1}"
        raise _refused("configValidationError", text)
    if value is not None and (wrong := _wrong_in_toml(value)) is not None:
        raise _refused("configValidationError", f"invalid value: {wrong}")
    parent: Any = config
    for name in tables:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if value is None:
        if not isinstance(parent, dict):
            raise _refused("configPathNotFound", "Path not found")
        parent.pop(last, None)
        return
    if parent is not None and not isinstance(parent, dict):
        raise _refused("configValidationError", "cannot set value on non-table parent")
    old = None if parent is None else parent.get(last)
    if strategy == "upsert" and isinstance(old, dict) and isinstance(value, dict):
        value = merged(old, value)
    put(config, path, value)


def _wrong_in_toml(value: Any) -> str | None:
    """Return why TOML cannot hold a value, or None if it can."""
    if isinstance(value, dict | list):
        return next(filter(None, map(_wrong_in_toml, value.values() if isinstance(value, dict) else value)), None)
    if value is None:
        return "invalid type: null, expected any valid TOML value"
    return "u64 value was too large" if isinstance(value, int) and value >= 1 << 63 else None


def _depth(value: Any) -> int:
    """Return how many tables are nested inside the outermost table: 0 for a table without tables."""
    depth, tables = -1, [value]
    while tables:
        depth, tables = depth + 1, [inner for table in tables for inner in table.values() if isinstance(inner, dict)]
    return depth


def saved(session: Session, request: Any, params: dict[str, Any]) -> None:
    """getUserSavedConfig: return the configuration in the form of the v1 API."""
    if session.file.load_error is not None:
        raise Refused(session.file.load_error, code=-32603)
    config = session.user_config
    names = (
        ("approvalPolicy", "approval_policy"), ("sandboxMode", "sandbox_mode"), ("sandboxSettings", "sandbox_workspace_write"),
        ("forcedChatgptWorkspaceId", "forced_chatgpt_workspace_id"), ("forcedLoginMethod", "forced_login_method"),
        ("model", "model"), ("modelReasoningEffort", "model_reasoning_effort"),
        ("modelReasoningSummary", "model_reasoning_summary"), ("modelVerbosity", "model_verbosity"), ("tools", "tools"),
        ("profile", "profile"),
    )  # fmt: skip
    report: dict[str, Any] = {name: config.get(key) for name, key in names}
    for name, members in (("sandboxSettings", _WRITABLE), ("tools", _TOOLS)):
        if isinstance(report[name], dict):
            report[name] = _cased(members, report[name])
    known = {key: value for key, value in _PROFILE.items() if key != "web_search"}
    profiles = {name: _cased(known, profile) for name, profile in (config.get("profiles") or {}).items()}
    session.answer(request, {"config": {**report, "profiles": profiles}})


def _cased(members: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return the known members of a table under their names in the v1 API."""
    return {camel(key): given.get(key, default) for key, default in members.items()}


def default_model(session: Session, request: Any, params: dict[str, Any]) -> None:
    """setDefaultModel: set the model and the reasoning effort of every later conversation.

    The profile with which the server was started gets the values, otherwise the profile that the file names.
    """
    if session.file.edit_error is not None:
        raise Refused(f"failed to persist model selection: {session.file.edit_error}", code=-32603)
    config = session.user_config
    profile = session.file.config.get("profile", config.get("profile"))
    table = config if profile is None else (config.get("profiles") or {}).get(profile) or {}
    for key, name in (("model", "model"), ("model_reasoning_effort", "reasoningEffort")):
        if params.get(name) is None:
            table.pop(key, None)
        else:
            table[key] = params[name]
    if profile is not None and table:
        config.setdefault("profiles", {})[profile] = table
    session.write_config(config)
    session.answer(request, {})


METHODS: dict[str, Method] = {
    "config/read": read,
    "config/value/write": value_write,
    "config/batchWrite": batch_write,
    "getUserSavedConfig": saved,
    "setDefaultModel": default_model,
}
