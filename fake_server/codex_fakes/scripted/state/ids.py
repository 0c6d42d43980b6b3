"""Make ids in the form of the real server: uuids of version 7 for threads (they sort by time), and of version 4 for items and
subscriptions.
"""

from __future__ import annotations

from posix import urandom

_latest = 0  # the first eight bytes of the latest version 7 uuid, as a number


def uuid7(now: float) -> str:
    """Return a version 7 uuid for the time `now` (seconds since the epoch).

    Uuids of the same millisecond sort in the order of their creation.
    """
    global _latest
    _latest = max(int(now * 1000) << 16 | urandom(1)[0], _latest + 1)
    return _dashed(_latest.to_bytes(8, "big") + urandom(8), 0x70)


def uuid4() -> str:
    """Return a random uuid."""
    return _dashed(urandom(16), 0x40)


def _dashed(data: bytes, version: int) -> str:
    text = (data[:6] + bytes([data[6] & 0x0F | version, data[7], data[8] & 0x3F | 0x80]) + data[9:]).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def uuid_error(text: str) -> str | None:
    """Return the error message of Rust's uuid library for a text that is not a uuid. Return None for a uuid."""
    plain = text.removeprefix("urn:uuid:")
    for i, c in enumerate(plain):
        if c not in "0123456789abcdefABCDEF-":
            return (
                "invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
                f"found `{c}` at {i + 1 + len(text) - len(plain)}"
            )
    groups = plain.split("-")
    if len(groups) == 1 and plain == text:
        return None if len(plain) == 32 else f"invalid length: expected length 32 for simple format, found {len(plain)}"
    if len(groups) != 5:
        return f"invalid group count: expected 5, found {len(groups)}"
    for number, (group, size) in enumerate(zip(groups, (8, 4, 4, 4, 12), strict=True)):
        if len(group) != size:
            length = len(group) + (len(text) - len(plain) if number == 4 else 0)  # the library counts the prefix here
            return f"invalid group length in group {number}: expected {size}, found {length}"
    return None


def with_hyphens(uuid: str) -> str:
    """Return a uuid in the form in which the server writes it.

    A client may write `urn:uuid:` before it, leave out the hyphens, and use capital letters.
    """
    uuid = uuid.removeprefix("urn:uuid:").lower()
    return f"{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}" if len(uuid) == 32 else uuid
