"""The names of models: the names that clients may request, and the names for the app-server (PAY-08 to PAY-13).

An alias stands for a model with an effort: `gpt-5.2-codev-l` is `gpt-5.2` at `low`. Other names are not changed.
"""

from __future__ import annotations

from typing import NamedTuple

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")
MODELS = ("gpt-5.2", "gpt-5.2-codex")
ALIASES: dict[str, tuple[str, str]] = {
    f"gpt-5.2-codev-{letter}": ("gpt-5.2", effort)
    for letter, effort in (("l", "low"), ("m", "medium"), ("h", "high"), ("xh", "xhigh"))
}


class Model(NamedTuple):
    """`requested` is returned to the client, `effective` is sent to the app-server; `effort` is the effort of the alias."""

    requested: str
    effective: str
    effort: str | None


def normalize_model(requested: str) -> Model:
    """Resolve a model's name; spaces around it are ignored, and an alias may be written in any case."""
    name = requested.strip()
    effective, effort = ALIASES.get(name.lower(), (name, None))
    return Model(requested, effective, effort)


def listed() -> list[str]:
    """The names that `/v1/models` lists."""
    return [*MODELS, *ALIASES]
