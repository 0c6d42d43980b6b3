"""Read the rate limits from the headers of the backend's answers, like Codex 0.92.0.

The rules here were derived from the behaviour of the real Codex. Numbers in headers are parsed as in Rust, which allows no
underscores. A rate limit window that contains only zeros counts as missing. The rate limit windows of an answer replace
those of the previous answer, but credits stay until new credits come.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_TRUE, _FALSE = ("true", "1"), ("false", "0")
_I64 = 1 << 63


def limits_of(headers: Mapping[str, str]) -> dict[str, Any]:
    """Return the rate limits in the headers of an answer: `primary` and `secondary` (minutes, and seconds since the epoch), and
    `credits`.

    The names in `headers` must be in lower case; the result has only the limits that the headers contain. A header with an
    invalid value counts as absent.
    """
    found: dict[str, Any] = {}
    for name in ("primary", "secondary"):
        used = _number(headers.get(f"x-codex-{name}-used-percent"), float)
        if used is None:
            continue
        minutes, at = (_number(headers.get(f"x-codex-{name}-{key}"), int) for key in ("window-minutes", "reset-at"))
        if used or minutes or at is not None:
            found[name] = {"used_percent": used, "window_minutes": minutes, "resets_at": at}
    has, unlimited = (_flag(headers.get(f"x-codex-credits-{key}", "")) for key in ("has-credits", "unlimited"))
    if has is not None and unlimited is not None:
        balance = headers.get("x-codex-credits-balance", "").strip() or None
        found["credits"] = {"has_credits": has, "unlimited": unlimited, "balance": balance}
    return found


def _number(text: str | None, kind: type[int] | type[float]) -> Any:
    try:
        value = kind("x" if text is None or "_" in text else text)
    except ValueError:
        return None
    fits = -_I64 <= value < _I64 if kind is int else abs(value) < float("inf")
    return value if fits else None


def _flag(text: str) -> bool | None:
    return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None


def joined(before: Mapping[str, Any] | None, now: Mapping[str, Any]) -> dict[str, Any]:
    """Return the rate limits after a new answer: the windows and the credits in the answer.

    If the new answer has no credits, the earlier credits stay valid.
    """
    kept = now.get("credits") or (before or {}).get("credits")
    return {**now, "credits": kept} if kept else dict(now)
