"""JSON values that know their path in the answer of a proxy, so that an error about a missing key or item can name the path.

For example, a check reads `done.json["choices"][0]["message"]`, and the error text is `choices[0] has no "message"`.
"""

from __future__ import annotations

from typing import Any

from codex_replay.core.text.truncate import shortened
from codex_replay.shell.rpc.client import SubjectFailure

#: How much of a value a sentence shows.
SHOWN = 300


class Object(dict[str, Any]):
    """A JSON object of an answer; reading a missing key raises `SubjectFailure`."""

    path = ""

    def __missing__(self, key: str) -> Any:
        __tracebackhide__ = True
        raise SubjectFailure(f"{self.path} has no {key!r}. The value there is {_short(self)}")


class Array(list[Any]):
    """A JSON array of an answer; reading a missing item, or a key, raises `SubjectFailure`."""

    path = ""

    def __getitem__(self, at: Any) -> Any:
        __tracebackhide__ = True
        try:
            return super().__getitem__(at)
        except (IndexError, TypeError):
            raise SubjectFailure(f"{self.path} has no [{at!r}]. The value there is {_short(self)}") from None


def placed(value: Any, path: str) -> Any:
    """Return a copy of a JSON value in which each object and array knows its JSON path.

    Apart from the paths, the copy equals the value.

    `path` is the name of the whole value in error messages.
    """
    if isinstance(value, dict):
        found = Object((key, placed(each, f"{path}.{key}")) for key, each in value.items())
        found.path = path
        return found
    if isinstance(value, list):
        items = Array(placed(each, f"{path}[{at}]") for at, each in enumerate(value))
        items.path = path
        return items
    return value


def _short(value: Any) -> str:
    return f"{shortened(repr(value), SHOWN)}."
