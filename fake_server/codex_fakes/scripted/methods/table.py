"""The functions that handle the methods of the scripted fake, by method.

The modules of rarely used methods are loaded at the first call.
"""

from __future__ import annotations

from codex_fakes.scripted.methods import v2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from codex_fakes.scripted.methods.protocols import Method

METHODS = {**v2.METHODS}
#: Modules of methods that few clients call, each loaded at the first of its own; so is v1, whose methods have no slash.
_SELDOM = {
    "mcpServerStatus/list": "machine",
    "review/start": "review", "command/exec": "machine", "execOneOffCommand": "machine", "gitDiffToRemote": "machine",
    "config/mcpServer/reload": "machine",
    "skills/list": "machine", "skills/config/write": "machine", "mcpServer/oauth/login": "machine", "config/read": "config",
    "config/value/write": "config", "config/batchWrite": "config", "getUserSavedConfig": "config", "setDefaultModel": "config",
    "account/read": "account", "account/rateLimits/read": "account", "account/login/start": "account",
    "account/login/cancel": "account", "account/logout": "account", "getAuthStatus": "account", "userInfo": "account",
    "loginApiKey": "account", "loginChatGpt": "account", "cancelLoginChatGpt": "account", "logoutChatGpt": "account",
}  # fmt: skip


def handler_of(method: str) -> Method | None:
    """Return the function of a method, or None if the method has a constant answer (answers.json)."""
    if method not in METHODS and (method in _SELDOM or "/" not in method):
        from importlib import import_module

        METHODS.update(import_module(f"codex_fakes.scripted.methods.{_SELDOM.get(method, 'v1')}").METHODS)
    return METHODS.get(method)
