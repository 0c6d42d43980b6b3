"""The shape of a JSON schema: a normal form of the allowed values, in which two schemas can be compared.

A shape is a set of alternatives, one for each JSON type: null, constants, strings, numbers, arrays, objects. The module `read`
makes shapes from schemas, `sets` joins and intersects shapes, and `compare` compares shapes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

Extra = Literal["open", "closed", "map"]
Limits = tuple[tuple[str, Any], ...]
#: The JSON types whose values can be listed.
SCALARS = ("boolean", "string", "number")


class Number(NamedTuple):
    """Numbers from `low` to `high`, both included; if `whole` is True, only whole numbers."""

    whole: bool
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Array:
    """Arrays whose items match the schema `items` (True for anything), and whose length is within `limits`."""

    items: Any
    limits: Limits = ()


@dataclass(frozen=True, slots=True, eq=False)
class Object:
    """Objects with `properties` (name -> schema), of which `required` are always present.

    `extra` is the rule for unlisted keys: "open" (any key and value), "closed" (no other keys), or "map" (values of the
    schema `values`).
    """

    properties: dict[str, Any]
    required: frozenset[str]
    extra: Extra = "open"
    values: Any = True
    limits: Limits = ()
    title: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """The values that a schema allows.

    `constants` are JSON texts. `string` has the limits of strings, or is None if no strings are allowed.

    If `anything` is True, every JSON value is allowed. `unread` has the unsupported keywords of the schema, with their JSON
    text. `owner` is the definition that contains the schema. `owner` is only for display, and does not affect the
    comparison.
    """

    anything: bool = False
    null: bool = False
    constants: frozenset[str] = frozenset()
    boolean: bool = False
    string: Limits | None = None
    number: Number | None = None
    array: Array | None = None
    objects: tuple[Object, ...] = ()
    unread: Limits = ()
    owner: str = ""
    _kinds: list[frozenset[str]] = field(default_factory=list, init=False, repr=False)

    def kinds(self) -> frozenset[str]:
        """Return the JSON types that are allowed, without null."""
        if not self._kinds:
            found = {kind_of(text) for text in self.constants}
            found |= {kind for kind in ("boolean", "string", "number", "array") if self.free(kind)}
            self._kinds.append(frozenset(found | ({"object"} if self.objects else set())))
        return self._kinds[0]

    def only_null(self) -> bool:
        """Return True if the shape allows only null."""
        return self.null and not self.anything and not self.kinds()

    def free(self, kind: str) -> bool:
        """Return True if unlisted values of the scalar `kind` are allowed."""
        return getattr(self, kind) not in (None, False)

    def listed(self, kind: str) -> frozenset[str]:
        """Return the constants of the scalar `kind`."""
        return frozenset(text for text in self.constants if kind_of(text) == kind)


ANYTHING = Shape(anything=True)
NOTHING = Shape()


def kind_of(text: str) -> str:
    """Return the JSON type of the constant whose JSON text is `text`."""
    return {'"': "string", "t": "boolean", "f": "boolean", "[": "array", "{": "object"}.get(text[0], "number")


def text_of(value: Any) -> str:
    """Return the JSON text for comparing a constant: 1 and true have different texts, and the order of keys does not matter."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
