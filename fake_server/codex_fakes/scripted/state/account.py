"""The `account` of a script: the account with which the fake is logged in when it starts."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Account = dict[str, Any]

#: The defaults of a script's account that has only a type.
_DEFAULTS = {
    "apiKey": {"token": "sk-fake-codex-replay"},
    "chatgpt": {"email": "fake@codex-replay.invalid", "planType": "pro", "token": "fake-access-token"},
}


def account_of(given: Any) -> Account | None:
    """Return the account of a script: "api_key", "chatgpt", an object with `type`, or None."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {"type": given}
    kind = "chatgpt" if given.get("type") == "chatgpt" else "apiKey"
    return {**_DEFAULTS[kind], **given, "type": kind}
