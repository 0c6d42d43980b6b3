"""The response of the backend under test to one request."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from codex_replay.core.wire.sse import Block, Decoder
from codex_replay.shell.rpc.client import SubjectFailure


@dataclass(frozen=True)
class Answer:
    """The backend's answer to one request; `asked` is the line of the request, such as "POST /responses"."""

    asked: str
    status: int
    headers: list[tuple[str, str]]
    body: bytes = field(repr=False)

    def header(self, name: str) -> str:
        """Return the value of a header, or "" if the header is missing; upper and lower case in the name are equal."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")

    @cached_property
    def value(self) -> Any:
        """The decoded JSON body; raises `SubjectFailure` if it is not JSON."""
        __tracebackhide__ = True
        try:
            return json.loads(self.body)
        except ValueError:
            raise SubjectFailure(f"The body is not JSON.\n{self.report_on()}") from None

    @property
    def error(self) -> dict[str, Any]:
        """The error object; raises `SubjectFailure` unless the body is `{"error": {...}}`."""
        __tracebackhide__ = True
        error = self.value.get("error") if isinstance(self.value, dict) else None
        if not isinstance(error, dict):
            raise SubjectFailure(f'The body has no object "error".\n{self.report_on()}')
        return error

    @cached_property
    def blocks(self) -> list[Block]:
        """Return the blocks of an event stream; raises `SubjectFailure` if the request did not succeed."""
        __tracebackhide__ = True
        if self.status != 200:
            raise SubjectFailure(f"The request was refused.\n{self.report_on()}")
        decoder = Decoder()
        return decoder.feed(self.body) + decoder.close()

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """The decoded events of the stream; raises `SubjectFailure` if an event is not a JSON object."""
        __tracebackhide__ = True
        found = []
        for block in self.blocks:
            if not block.dispatched:
                continue
            try:
                value = json.loads(block.data or b"")
            except ValueError:
                value = None
            if not isinstance(value, dict):
                text = block.raw[:200].decode("utf-8", "backslashreplace")
                raise SubjectFailure(f"The data of an event is not a JSON object: {text!r}\n{self.report_on()}")
            found.append(value)
        return found

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of the type `kind`, in the order of the stream."""
        __tracebackhide__ = True
        return [event for event in self.events if event.get("type") == kind]

    @property
    def items(self) -> list[dict[str, Any]]:
        """The completed output items, in the order of the stream."""
        __tracebackhide__ = True
        return [event["item"] for event in self.of("response.output_item.done")]

    @property
    def text(self) -> str:
        """The text of the answer, joined from its deltas."""
        __tracebackhide__ = True
        return "".join(event["delta"] for event in self.of("response.output_text.delta"))

    def report_on(self) -> str:
        """Return the answer as readable text, for failure reports."""
        text = self.body.decode("utf-8", "replace")
        return f"{self.asked} -> {self.status}\n{text if len(text) < 2000 else text[:2000] + '...'}"
