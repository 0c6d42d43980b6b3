"""The Codex versions that this project names: the default version, and the versions in which the protocol changed.

No other module contains version numbers. All differences between versions are data (`data/<version>/`);
`codex_replay.protocol.data_tables.versions` lists the versions that have data. The program fake-codex loads this module at
start-up, so the module imports no other modules.
"""

from __future__ import annotations

#: The version of the specification. It is used where a command, a cassette or a subject names no version.
DEFAULT = "0.92.0"
#: The versions at which the protocol changed, oldest first; the last one is the newest that was examined.
STEPS = (
    *("0.92.0", "0.93.0", "0.98.0", "0.99.0", "0.104.0", "0.105.0", "0.107.0", "0.110.0"),
    *("0.115.0", "0.116.0", "0.125.0", "0.140.0", "0.150.0", "0.160.0", "0.169.0"),
)
#: The first of these whose app-server has `--listen`.
LISTENS = "0.104.0"
#: The version of the `openai` package whose event types are packaged as data.
OPENAI = "3.52.0"


def is_version(text: str) -> bool:
    """Return True if `text` is a version number such as 1.2.3 or 1.2.3-alpha.4, and not "unknown", a path or another text."""
    release, dash, pre = text.partition("-")
    digits = release.split(".")
    return (
        text.isascii()
        and len(digits) == 3
        and all(part.isdigit() and len(part) < 10 for part in digits)
        and (not dash or all(part.isalnum() for part in pre.split(".")))
    )


def numbers(version: str) -> tuple[int, ...]:
    """Return the three numbers of a version, to compare versions; a pre-release gets the same numbers as its release."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))
