"""One request that the fake backend received, from its ledger (the file that records all requests).

Cases use `Request` to check the requests of a client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codex_replay.protocol.script.expect import continued, input_items, last_user, turn_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Request:
    """One request as the backend received it.

    `path` has no session prefix; `body` is decoded, or None if it is not JSON.
    """

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: Any
    status: int | None
    sentence: str | None
    #: The items of the conversation that it continues by an id (only a function as the model gets them).
    earlier: Sequence[Mapping[str, Any]] = ()

    def header(self, name: str) -> str | None:
        """Return the value of a header, or None if the header is missing.

        `name` may be in upper or lower case; the values of a repeated header are joined.
        """
        found = [value for key, value in self.headers if key.lower() == name.lower()]
        return ", ".join(found) if found else None

    @property
    def prompt(self) -> str:
        """The text of the user's last message in the input; "" if the input has no message of the user."""
        return last_user(self._mapping)

    @property
    def outputs(self) -> dict[str, Any]:
        """The outputs of the tool calls in the input of the request, by call id."""
        return {str(item.get("call_id")): item["output"] for item in input_items(self._mapping) if "output" in item}

    @property
    def turn(self) -> int:
        """The number of the model's reply that the request asks for: 1 for the first reply.

        The number is the number of earlier replies in the input of the request, plus 1.
        """
        return turn_number(continued(self._mapping, self.earlier))

    @property
    def _mapping(self) -> dict[str, Any]:
        return self.body if isinstance(self.body, dict) else {}

    @property
    def payload(self) -> dict[str, Any]:
        """The request in the form of an HTTP frame of a cassette."""
        payload = {"method": self.method, "path": self.path, "headers": [list(pair) for pair in self.headers]}
        return payload if self.body is None else {**payload, "body": self.body}

    @property
    def line(self) -> str:
        """Return one line with the request and its response."""
        why = f" ({self.sentence})" if self.sentence else ""
        return f"{self.method} {self.path} -> {self.status or 'no answer'}{why}"


def request_of(entry: Mapping[str, Any], url: str) -> Request:
    """Return the request of an entry of the ledger; `url` is the URL of the session."""
    path = entry["path"].removeprefix(urlsplit(url).path)
    headers = [(name, value) for name, value in entry["headers"]]
    result = entry["status"], entry["sentence"], entry.get("earlier", ())
    return Request(entry["method"], path, headers, entry.get("body"), *result)
