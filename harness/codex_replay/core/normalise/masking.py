"""The compiled masking rules of one table: which leaf values of a message change from run to run, and what replaces them.

`Rules` masks one leaf value at a time and keeps uuids. The live matcher uses `Rules` to compare two values, and `normalise`
uses `Rules` for a whole run. Masking keeps the key and the type: a masked number is 0, a masked string is `<time>`, null
stays null.

Source: REAL-113; the table is `protocol/data/<version>/normalise.json`. fake-codex loads this module as
soon as a client names its own directory, as nearly every client does: so `re` is imported only for a text that a pattern may
match, and each pattern is compiled when it is first needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterator
    from typing import Any

#: An id that a backend makes up: a known prefix, then many letters and digits that are no word and no camelCase name.
MADE_FORM = r"(?<![0-9A-Za-z])({})[_-](?=[A-Za-z]*(?:[0-9]|[A-Z]{{2}}))[0-9A-Za-z]{{16,}}(?![0-9A-Za-z])"
SHORTEST_MADE = 19  # characters of an id: a prefix of two, the separator, and the rest
UUID_FORM = r"(?<![0-9A-Za-z])[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?![0-9A-Za-z])"


class _Pattern:
    """One entry of "strings" in the masking table: the pattern to find in a text, and its replacement."""

    __slots__ = ("_compiled", "_form", "_replace")

    def __init__(self, form: str, replace: str) -> None:
        self._form = form
        self._replace = replace
        self._compiled: re.Pattern[str] | None = None

    def masked(self, text: str) -> str:
        """Return the text with every occurrence replaced."""
        return (self._compiled or self._compile()).sub(self._replace, text)

    def first(self, text: str) -> str | None:
        """Return the first uuid in the text, or None."""
        found = (self._compiled or self._compile()).search(text)
        return found[0] if found else None

    def _compile(self) -> re.Pattern[str]:
        import re

        self._compiled = compiled = re.compile(self._form)
        return compiled


class Rules:
    """The masking rules of one table. The masking rules have no state, so they mask recorded and live values in the same way."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._keys: dict[str, str] = table["keys"]
        self._headers: dict[str, str] = table["headers"]
        # Most strings contain none of a rule's words ("has"), and a substring test is far cheaper than a search.
        self._strings = [(rule["has"], _Pattern(rule["pattern"], rule["replace"])) for rule in table["strings"]]
        self._root_patterns = [found for found, rule in zip(self._strings, table["strings"], strict=True) if rule.get("root")]
        self._root_keys = frozenset(table["roots"])
        self._roles: dict[str, str] = table["roles"]
        self._made_prefixes: list[str] = table["made_ids"]["prefixes"]
        self._made_pattern: re.Pattern[str] | None = None

    def masked_key(self, key: str) -> str | None:
        """Return the reason why the value under `key` changes from run to run ("time", "duration", "path", "version").

        Return None if the value does not change.
        """
        return self._keys.get(key)

    def masked_header(self, name: str) -> str | None:
        """Return the reason why the value of an HTTP header changes from run to run, or None.

        The name of the header may be in upper or lower case.
        """
        return self._headers.get(name.lower())

    def mask_string(self, text: str) -> str:
        """Return `text` with the parts masked that change from run to run. Uuids are kept, because the caller binds them."""
        for words, pattern in self._strings:
            for word in words:
                if word in text:
                    text = pattern.masked(text)
                    break
        return text

    def mask(self, key: str, value: Any) -> Any:
        """Return one leaf value masked for comparison, by its key or by the string patterns.

        The masked value has the same type as the original value.

        A relative path is not masked, because it does not depend on the machine. Objects and lists are returned unchanged.
        """
        what = self._keys.get(key)
        if type(value) is str:
            if what is None or (what == "path" and not _is_absolute(value)):
                return self.mask_string(value)
            return f"<{what}>"
        if what is not None and type(value) in (int, float):
            return 0
        return value

    @staticmethod
    def uuids(text: str) -> list[str]:
        """Return the uuids in `text`, in order."""
        if not _has_dashes_of_a_uuid(text):
            return []
        import re

        return re.findall(UUID_FORM, text)

    def name_made(self, text: str, name: Callable[[str, str], str]) -> str:
        """Replace the ids in `text` that a backend generated.

        The function `name` gets the prefix of an id and the id, and returns the replacement of the id.
        """
        if not self._may_hold_made(text):
            return text
        return self._made().sub(lambda found: name(found[1], found[0]), text)

    def identities(self, text: str) -> list[str]:
        """Return the uuids in `text`, in order, followed by the ids that a backend generated."""
        uuids = self.uuids(text)
        return uuids + [found[0] for found in self._made().finditer(text)] if self._may_hold_made(text) else uuids

    def _may_hold_made(self, text: str) -> bool:
        if len(text) < SHORTEST_MADE or ("_" not in text and "-" not in text):
            return False
        return any(prefix in text for prefix in self._made_prefixes)

    def _made(self) -> re.Pattern[str]:
        if self._made_pattern is None:
            import re

            self._made_pattern = re.compile(MADE_FORM.format("|".join(self._made_prefixes)))
        return self._made_pattern

    def role(self, parent: str, key: str) -> str | None:
        """Return the kind of object ("thread", "item", "subscription") that the uuid under `key` identifies, or None.

        `parent` is the key of the object that has `key`.
        """
        return self._roles.get(key) or self._roles.get(f"{parent}.{key}")

    def roots(self, key: str, text: str) -> Iterator[str]:
        """Yield the directories in the string under `key`: a working directory, or the Codex home."""
        if key in self._root_keys and _is_absolute(text) and len(text) > 1:
            yield text.rstrip("/\\")
        for words, pattern in self._root_patterns:
            if any(word in text for word in words) and (found := pattern.first(text)) is not None:
                yield found


def _is_absolute(path: str) -> bool:
    """Return True if a path begins at a root, a home, a drive (`C:\\`) or a machine (`\\\\`)."""
    if path.startswith(("/", "~", "\\\\")):
        return True
    return path[1:2] == ":" and path[2:3] in ("/", "\\") and path[0].isascii() and path[0].isalpha()


def _has_dashes_of_a_uuid(text: str) -> bool:
    """Return True if the text contains four dashes at the distances of a uuid, and must be compared with `UUID_FORM`."""
    at = text.find("-")
    while at >= 0:
        if text[at : at + 16 : 5] == "----":
            return True
        at = text.find("-", at + 1)
    return False
