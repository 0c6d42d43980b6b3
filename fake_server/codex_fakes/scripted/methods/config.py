"""The configuration that the client reads and writes: in memory only, independent of config.toml and its place.

A written value applies until the process ends and to every later thread; no file is touched. The layers are
those of the real server: the user's file and the system's, which counts as empty. Versions are the real server's too:
SHA-256 over the layer as JSON with sorted keys (seen in recordings of config/read).
"""

from __future__ import annotations

from codex_fakes.scripted.state.form import wrong_setting
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import put
from codex_replay.core.wire.json_text import dumps
from codex_replay.protocol.data_tables import load

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
_SYSTEM = "/etc/codex/config.toml"


def version(config: dict[str, Any]) -> str:
    """Return the version of a layer."""
    from hashlib import sha256

    return "sha256:" + sha256(dumps(_sorted(config))).hexdigest()


def _sorted(value: Any) -> Any:
    if type(value) is dict:
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(item) for item in value] if type(value) is list else value


def _layer(session: Session) -> dict[str, Any]:
    return {"name": {"type": "user", "file": f"{session.home}/config.toml"}, "version": version(session.config)}


def read(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/read: the settings in force, the source of each and, on request, the layers."""
    config = session.config
    report: dict[str, Any] = {key: config.get(key) for key in _TOLD}
    report["profiles"] = config.get("profiles") or {}
    if isinstance(report["tools"], dict):
        report["tools"] = {"web_search": None, "view_image": None, **report["tools"]}
    report |= {key: value for key, value in config.items() if key not in report}
    layer = _layer(session)
    result: dict[str, Any] = {"config": report, "origins": dict.fromkeys(_leaves(config), layer)}
    if params.get("includeLayers"):
        system = {"name": {"type": "system", "file": _SYSTEM}, "version": version({}), "config": {}}
        result["layers"] = [{**layer, "config": _sorted(config)}, system]
    session.answer(request, result)


def _leaves(config: Any, prefix: str = "") -> list[str]:
    found: list[str] = []
    for key, value in config.items() if isinstance(config, dict) else enumerate(config):
        found += _leaves(value, f"{prefix}{key}.") if isinstance(value, dict | list) else [f"{prefix}{key}"]
    return found


def value_write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/value/write: one edit."""
    _write(session, request, params, [params])


def batch_write(session: Session, request: Any, params: dict[str, Any]) -> None:
    """config/batchWrite: apply all edits, or none of them if one is invalid."""
    _write(session, request, params, params["edits"])


def _write(session: Session, request: Any, params: dict[str, Any], edits: list[dict[str, Any]]) -> None:
    from copy import deepcopy

    file = f"{session.home}/config.toml"
    if params.get("filePath") not in (None, file):
        raise _refused("configLayerReadonly", "Only writes to the user config are allowed")
    wanted = params.get("expectedVersion")
    if wanted is not None and wanted != version(session.config):
        text = "Configuration was modified since last read. Fetch latest version and retry."
        raise _refused("configVersionConflict", text)
    config = deepcopy(session.config)
    for edit in edits:
        _edit(config, edit["keyPath"], edit["value"], edit["mergeStrategy"])
    if (wrong := wrong_setting(config, load("forms", session.version)["settings"])) is not None:
        raise _refused("configValidationError", f"Invalid configuration: {wrong}")
    session.config = config
    result = {"status": "ok", "version": version(config), "filePath": file, "overriddenMetadata": None}
    session.answer(request, result)


def _refused(code: str, message: str) -> Refused:
    return Refused(message, data={"config_write_error_code": code})


def _edit(config: dict[str, Any], path: str, value: Any, strategy: str) -> None:
    """Set, merge or (with null) delete one key."""
    *tables, last = path.split(".")
    if value is None:
        for name in tables:
            config = config.get(name) or {}
        config.pop(last, None)
        return
    old: Any = config
    for name in (*tables, last):
        old = old.get(name) if isinstance(old, dict) else None
    both = strategy == "upsert" and isinstance(old, dict) and isinstance(value, dict)
    put(config, path, _merged(old, value) if both else value)


def _merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        both = isinstance(value, dict) and isinstance(old.get(key), dict)
        merged[key] = _merged(old[key], value) if both else value
    return merged


def saved(session: Session, request: Any, params: dict[str, Any]) -> None:
    """getUserSavedConfig: v1's form of it."""
    config = session.config
    names = (
        ("approvalPolicy", "approval_policy"), ("sandboxMode", "sandbox_mode"), ("sandboxSettings", "sandbox_workspace_write"),
        ("forcedChatgptWorkspaceId", "forced_chatgpt_workspace_id"), ("forcedLoginMethod", "forced_login_method"),
        ("model", "model"), ("modelReasoningEffort", "model_reasoning_effort"),
        ("modelReasoningSummary", "model_reasoning_summary"), ("modelVerbosity", "model_verbosity"), ("tools", "tools"),
        ("profile", "profile"),
    )  # fmt: skip
    report = {name: config.get(key) for name, key in names}
    session.answer(request, {"config": {**report, "profiles": config.get("profiles") or {}}})


def default_model(session: Session, request: Any, params: dict[str, Any]) -> None:
    """setDefaultModel: model and effort of every conversation to come."""
    for key, name in (("model", "model"), ("model_reasoning_effort", "reasoningEffort")):
        _edit(session.config, key, params.get(name), "replace")
    session.answer(request, {})


METHODS: dict[str, Method] = {
    "config/read": read,
    "config/value/write": value_write,
    "config/batchWrite": batch_write,
    "getUserSavedConfig": saved,
    "setDefaultModel": default_model,
}
