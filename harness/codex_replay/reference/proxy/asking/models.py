"""Map the model names that clients request to the names for the app-server (PAY-08 to PAY-13).

An alias stands for a model and a reasoning effort: `gpt-5.2-codev-l` is `gpt-5.2` with the effort `low`. A model name that
is not an alias stays unchanged.
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
    """The names of a model: `requested` is returned to the client, and `effective` is sent to the app-server.

    `effort` is the reasoning effort of the alias.
    """

    requested: str
    effective: str
    effort: str | None


def normalize_model(requested: str) -> Model:
    """Return the model for the name that a client requested.

    Spaces around the name are ignored, and an alias may be in upper or lower case.
    """
    name = requested.strip()
    effective, effort = ALIASES.get(name.lower(), (name, None))
    return Model(requested, effective, effort)


def listed() -> list[str]:
    """Return the model names that `/v1/models` lists."""
    return [*MODELS, *ALIASES]
