"""The account that a script gives: who is logged in at the start."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Account = dict[str, Any]

#: What a script's account is when it says no more than its type.
_DEFAULTS = {
    "apiKey": {"token": "sk-fake-codex-replay"},
    "chatgpt": {"email": "fake@codex-replay.invalid", "planType": "pro", "token": "fake-access-token"},
}


def account_of(given: Any) -> Account | None:
    """Return the account that a script gives: "api_key", "chatgpt", an object with `type`, or none."""
    if given is None:
        return None
    if isinstance(given, str):
        given = {"type": given}
    kind = "chatgpt" if given.get("type") == "chatgpt" else "apiKey"
    return {**_DEFAULTS[kind], **given, "type": kind}
