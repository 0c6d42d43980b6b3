"""Immutable values with named fields, declared like a frozen dataclass, but cheaper to import.

The standard module `dataclasses` imports `inspect` and compiles methods for each class, which takes three times as long as the
rest of fake-codex's start-up.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Callable[[Any], Any]:
        """Declare the constructor arguments of the subclasses for the type checker; the decorator does nothing at run time."""
        return lambda cls: cls


#: The default of a part that is a mapping: one for all, since a value is never changed.
EMPTY: dict[str, Any] = {}


@dataclass_transform(frozen_default=True)
class Value:
    """An immutable value with a field for each annotation of its class and base classes, in their order.

    If the class assigns a value to an annotated name, the value is the default of the field.

    Two objects are equal if they have the same class and equal fields. An object never changes; the method `but` returns a
    changed copy.
    """

    _parts: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        above = [part for base in reversed(cls.__mro__[1:]) for part in getattr(base, "_parts", ())]
        cls._parts = tuple(dict.fromkeys([*above, *cls.__annotations__]))

    def __init__(self, *given: Any, **named: Any) -> None:
        """Set the fields by position or by name; raises `TypeError` for an unknown, missing or repeated field."""
        parts = self.__dict__
        names = self._parts
        parts.update(zip(names, given, strict=False))
        if len(given) == len(names) and not named:
            return  # as most are made
        parts.update(named)
        if len(parts) != len(given) + len(named) or not parts.keys() <= set(names):
            raise TypeError(
                f"{type(self).__name__} takes each of the fields {', '.join(names)} once; "
                f"the call has the arguments {given!r} and {named!r}."
            )
        if len(parts) < len(names):
            for name in names:
                if name not in parts and not hasattr(self, name):
                    raise TypeError(f"{type(self).__name__} needs the field {name}.")

    def but(self, **changes: Any) -> Self:
        """Return a copy of the object in which the named fields have new values."""
        return type(self)(**{**self.__dict__, **changes})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; make a changed copy with `but`.")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._parts)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self._parts))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in self._parts)})"
