"""Remove the allowed differences between two runs of a scenario: mask values, or bind identities to names.

Strategy: `masking.Rules` is the compiled table of masking rules, which masks one leaf value at a time. `Normaliser` masks the
values of a whole run by these rules. `Normaliser` also binds uuids, ids that a backend generated, request ids and directories to
names at their first occurrence (`<thread:1>`, `<resp:1>`, `<id:turn/start:1>`, `<path:1>`). As a result, two runs have equal
normalised values exactly if the same ids and directories are in the same places.

The members of an object that the server keeps in a hash map (`unordered_keys`) are sorted, because their order differs in each
run.

Source: REAL-113 to REAL-115; the table is `protocol/data/<version>/normalise.json`. Not on fake-codex's start-up
path (it needs `re`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from codex_replay.core.normalise.masking import UUID_FORM, Rules
from codex_replay.core.text.substitute import substitute
from codex_replay.core.wire.json_text import NotJson, dumps, loads
from codex_replay.core.wire.jsonrpc import kind

__all__ = ["UUID", "Normaliser", "Rules", "is_headers"]

UUID = re.compile(UUID_FORM)
_TOKEN = re.compile(r'"(?:[^"\\\r\n]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')

_ROLE_RANK = {"thread": 0, "subscription": 1, "item": 2, "uuid": 3}


def is_headers(value: Any) -> bool:
    """Return True if a value is a list of HTTP headers: pairs of strings."""
    return (
        type(value) is list
        and bool(value)
        and all(type(pair) is list and len(pair) == 2 and type(pair[0]) is str and type(pair[1]) is str for pair in value)
    )


class Normaliser:
    """Mask and bind the values of one run. First call `learn` for every value, then call `value` for each value, in order."""

    def __init__(self, table: dict[str, Any], rules: Rules | None = None) -> None:
        self.rules = rules or Rules(table)
        self._roles: dict[str, str] = {}
        self._unordered = frozenset(table["unordered_keys"])
        self._roots: list[str] = []
        self._names: dict[tuple[str, Any], str] = {}
        self._counts: dict[str, int] = {}
        self._asked: dict[tuple[str, str], list[str]] = {}

    # ------------------------------------------------------------------ learning

    def learn(self, value: Any) -> None:
        """Store the roles of the uuids in `value`, and the directories in `value`.

        Call `learn` before the first identity gets a name.

        `learn` is necessary because a uuid often first appears under a key without a role (in a path), and a directory often
        first appears inside a sentence.
        """
        self._learn("", "", value)

    def _learn(self, parent: str, key: str, value: Any) -> None:
        if type(value) is dict:
            for name, inner in value.items():
                self._learn(key, name, inner)
        elif type(value) is list:
            if key == "headers" and is_headers(value):
                for name, inner in value:
                    self._learn("headers", name.lower(), inner)
            else:
                for inner in value:
                    self._learn(parent, key, inner)
        elif type(value) is str and value:
            self._learn_string(parent, key, value)

    def _learn_string(self, parent: str, key: str, text: str) -> None:
        for root in self.rules.roots(key, text):
            if root not in self._roots:
                self._roots.append(root)
        if "-" in text:
            role = self.rules.role(parent, key) or "uuid"
            for found in UUID.finditer(text):
                known = self._roles.get(found[0].lower(), "uuid")
                # Only a uuid that is the whole value has its role from the key.
                mine = role if len(found[0]) == len(text) else "uuid"
                self._roles[found[0].lower()] = min(known, mine, key=_ROLE_RANK.__getitem__)

    # ------------------------------------------------------------------ naming

    def name(self, role: str, identity: Any) -> str:
        """Return the name of `identity`: `<role:1>` for the first identity with that `role`, `<role:2>` for the second, and so
        on.
        """
        name = self._names.get((role, identity))
        if name is None:
            self._counts[role] = count = self._counts.get(role, 0) + 1
            name = self._names[(role, identity)] = f"<{role}:{count}>"
        return name

    def value(self, value: Any) -> Any:
        """Return `value` with the parts masked that change from run to run, and with every identity replaced by its name."""
        return self._value("", value, None)

    def message(self, value: Any, sender: str) -> Any:
        """Return the normalised form of a JSON-RPC message of `sender`.

        The id of a request or a reply becomes a name with the method of the request (`<id:turn/start:1>`).

        Client and server number their requests independently, so the id of a server's request becomes `<server-id:...>`. A reply
        that answers no request has the id `<id:?>`. A notification may have a `requestId`, which names a request of the same
        sender.
        """
        normal = self.value(value)
        sort = kind(value)
        if sort == "request":
            prefix = "id" if sender == "client" else "server-id"
            # Counted by occurrence, for a client may use one id twice.
            asked = self._asked.setdefault((sender, _typed(value["id"])), [])
            name = self.name(f"{prefix}:{value['method']}", (sender, _typed(value["id"]), len(asked)))
            asked.append(name)
            normal["id"] = name
        elif sort in ("response", "error") and value["id"] is not None:
            other = "server" if sender == "client" else "client"
            asked = self._asked.get((other, _typed(value["id"])), [])
            normal["id"] = "<id:?>" if not asked else asked.pop(0) if len(asked) > 1 else asked[0]
        elif sort == "notification":
            params = value.get("params")
            named = params.get("requestId") if type(params) is dict else None
            if asked := self._asked.get((sender, _typed(named)), []):
                normal["params"]["requestId"] = asked[-1]
        return normal

    def payload(self, of: str, payload: Any) -> Any:
        """Return the normalised payload of an http frame.

        The path of a request is kept, because it is not a path in the file system.
        """
        normal = self.value(payload)
        if of == "ws" and type(payload) is dict:  # libraries choose the payload of a ping at random; its pong repeats it
            normal.update({key: self.name("ping", payload[key]) for key in ("ping", "pong") if key in payload})
        if of == "request" and type(payload) is dict and type(payload.get("path")) is str:
            normal["path"] = self.text(payload["path"])
        if type(payload) is dict and "view" in payload:  # the view already has the value
            if type(payload.get("text")) is str:
                text = payload["text"]
                normal["text"] = _event_form(text, self.text) if of == "sse" else text_form(text)
            elif "base64" in payload:
                normal["base64"] = "<packed>"
        return normal

    def _value(self, key: str, value: Any, inherited: str | None) -> Any:
        if type(value) is dict:
            # An object under a masked key ({"secs","nanos"}) is masked number by number; paths stand in keys too.
            inside = self.rules.masked_key(key) or inherited
            if inside == "path":
                inside = None
            if key in self._unordered:
                value = _by_key(value)
            return {
                name if name.isidentifier() else self.text(name): self._value(name, inner, inside)
                for name, inner in value.items()
            }
        if type(value) is list:
            if key == "headers" and is_headers(value):
                return [[name, self.header(name, inner)] for name, inner in value]
            return [self._value(key, inner, inherited) for inner in value]
        if type(value) is str:
            return self.string(key, value)
        if inherited is not None and type(value) in (int, float):
            return 0
        return self.rules.mask(key, value)

    def string(self, key: str, text: str) -> str:
        """Return the normalised form of the string under `key`."""
        named = self._name_roots(text)
        # A path below a known directory keeps its rest: that part does not depend on the machine.
        below = named is not text and named.startswith("<path:")
        return self._name_ids(self.rules.mask_string(named) if below else self.rules.mask(key, named))

    def text(self, text: str) -> str:
        """Return the normalised form of a string that has no key: a key of an object, or a line that is not JSON."""
        return self._name_ids(self.rules.mask_string(self._name_roots(text)))

    def header(self, name: str, text: str) -> str:
        """Return the normalised value of an HTTP header."""
        what = self.rules.masked_header(name)
        return f"<{what}>" if what is not None else self.text(text)

    def _name_roots(self, text: str) -> str:
        if not self._roots or ("/" not in text and "\\" not in text):
            return text
        return substitute(text, lambda root: self.name("path", root), self._roots)

    def _name_ids(self, text: str) -> str:
        text = self.rules.name_made(text, self.name)
        if "-" not in text:
            return text
        return UUID.sub(lambda found: self.name(self._roles.get(found[0].lower(), "uuid"), found[0].lower()), text)


def _by_key(value: Any) -> Any:
    """Return `value` with the members of all its objects sorted by name."""
    if type(value) is dict:
        return {name: _by_key(value[name]) for name in sorted(value)}
    return [_by_key(inner) for inner in value] if type(value) is list else value


def _typed(request_id: Any) -> str:
    """Return a dictionary key that is different for the request ids 1, "1" and 1.0, because a reply must repeat the exact id."""
    return repr(request_id)


def text_form(text: str) -> str:
    """Return the form of a JSON text: its spacing, line ends and comments, with `"` for each string and `0` for each number.

    A `~` marks a string or number in an unusual notation. A recording keeps the exact text if it is not the compact JSON of its
    value (`http_frames`); a comparison of two recordings compares the values and the forms of the texts separately.
    """
    return _TOKEN.sub(_blank, text)


def _event_form(text: str, other: Callable[[str], str]) -> str:
    """Return the text of a server-sent event with the form of its JSON data in place of the data.

    The function `other` returns the replacement for a line without data.
    """
    # Not splitlines: U+2028 ends no line of an event stream.
    return "\n".join(text_form(line) if line.startswith("data:") else other(line) for line in text.split("\n"))


def _blank(found: re.Match[str]) -> str:
    token = found[0]
    sign = '"' if token[0] == '"' else "0"
    try:
        return sign if dumps(loads(token.encode())) == token.encode() else f"{sign}~"
    except (NotJson, ValueError):
        return f"{sign}~"
