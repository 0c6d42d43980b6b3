"""Find `<tool_call>{...}</tool_call>` in the output of a model, which arrives in chunks of any size.

Strategy: a state machine reads each character once, and returns a text as soon as the text cannot be markup. A call ends
where its JSON ends, and not at the closing tag, because the tag may be inside a string, be missing, or be repeated. A tag
in a code block or a code span does not begin a call. Everything that cannot be a call becomes text, unchanged. Only an
incomplete call at the end of the stream is dropped.

    text -> lead (after the opening tag) -> object (until its braces close) -> tail (until the closing tag) -> after -> text
"""

from __future__ import annotations

import re
from collections.abc import Callable

from codex_replay.reference.proxy.wire.text_json import ToolCall, read_call

OPEN, CLOSE, FENCE = "<tool_call>", "</tool_call>", "```"
#: A stream that ends in this much of a tag was cut within markup; less may be anything.
SURELY_MARKUP = "<tool_"
SPECIAL = re.compile(r"[<`~\n]")
RUN = re.compile(r"`+|~+")
LEAD = re.compile(r"(?:\s|\[|```\w*|<tool_call>)*")
IN_STRING = re.compile(r'["\\]')
IN_OBJECT = re.compile(r'["{}\[\]<]')
TAIL = re.compile(r"(?:[\s\]}>]|```)*")
JUNK = re.compile(r"[\s\]}>]*")
AFTER = re.compile(r">*(?:\s*</tool_call>>*)*")

Piece = str | ToolCall


class ToolCallParser:
    """A parser that finds tool calls in the model's text.

    Call `feed` with each chunk of the text, and `close` at the end. `feed` and `close` return, in order, the texts and
    calls that later chunks cannot change.
    """

    def __init__(self) -> None:
        self._rest = ""  # not yet understood; short, save within an object
        self._state: Callable[[], bool] = self._text
        self._out: list[Piece] = []
        self._gap = ""  # white space at the start or after a call: text follows, or it is dropped
        self._bare = True  # nothing but white space since the start or the last call
        self._calls = 0
        self._fence = ""  # the marker of the open code block
        self._span = 0  # the back-ticks of the open code span
        self._line = ""  # the line so far, while it may still become a fence
        self._block: list[str] = []  # the markup of the present block, to be given back as text if it is not a call
        self._object: list[str] = []
        self._found: list[ToolCall] = []
        self._depth, self._quoted, self._array = 0, False, False

    def feed(self, text: str) -> list[Piece]:
        """Take the next chunk of the stream."""
        self._rest += text
        return self._run()

    def close(self) -> list[Piece]:
        """End the stream of the model's text. Return the buffered text, but no incomplete call."""
        out = self._run()
        if self._state == self._object_state and self._split():
            return out + self._run() + self.close()
        if self._state == self._text:
            self._write_out("" if _cut_off(self._rest, OPEN) else self._rest)
        elif self._state == self._tail:
            self._write_out("" if self._settle() else self._rest)
        elif self._state == self._after:
            self._settle()
            self._write_out("" if not self._rest.strip() or _cut_off(self._rest.strip(), CLOSE) else self._rest)
        if self._gap and not self._calls:
            self._out.append(self._gap)
        self._rest = self._gap = ""
        self._block = []
        return out + self._run()

    def _run(self) -> list[Piece]:
        while self._rest and self._state():
            pass
        out, self._out = self._out, []
        return out

    # -- text ------------------------------------------------------------------------------------------------------------

    def _write_out(self, text: str) -> None:
        """Pass a text on to the client. White space after a call is kept back until other text follows."""
        if self._bare:
            text = self._gap + text
            self._gap = ""
            if not text.strip():
                self._gap = text
                return
            self._bare = False
        if text and self._out and isinstance(self._out[-1], str):
            self._out[-1] += text
        elif text:
            self._out.append(text)

    def _text(self) -> bool:
        """Pass on the text before the next tag. Return True if there is more text to parse."""
        rest, at, message = self._rest, 0, 0
        while (match := SPECIAL.search(rest, at)) is not None:
            here = match.start()
            self._add_to_line(rest[at:here])
            at = here + 1
            if match[0] == "\n":
                self._line, self._span = "", 0
            elif match[0] == "<":
                if not self._fence and rest.startswith(OPEN, here):
                    return self._begin(message, here)
                if not self._fence and OPEN.startswith(rest[here:]):
                    self._write_out(rest[message:here])
                    self._rest = rest[here:]
                    return False
                self._add_to_line("<")
            else:
                run = RUN.match(rest, here)
                assert run is not None
                if run.end() == len(rest):  # it may go on
                    self._write_out(rest[message:here])
                    self._rest = rest[here:]
                    return False
                self._mark(run[0])
                at = run.end()
        self._add_to_line(rest[at:])
        self._write_out(rest[message:])
        self._rest = ""
        return False

    def _mark(self, run: str) -> None:
        """Handle a sequence of backticks or tildes.

        At the start of a line, the sequence is a fence of a code block; at any other place, it marks a code span.
        """
        if len(run) >= 3 and not self._line.strip() and len(self._line) <= 3:
            if not self._fence:
                self._fence = run
            elif run.startswith(self._fence):
                self._fence = ""
        elif run[0] == "`" and not self._fence:
            self._span = 0 if self._span == len(run) else self._span or len(run)
        self._add_to_line(run)

    def _add_to_line(self, text: str) -> None:
        if len(self._line) < 8:  # enough to recognise a fence's line
            self._line += text[:8]

    def _begin(self, said: int, here: int) -> bool:
        self._write_out(self._rest[said:here])
        self._block, self._rest = [OPEN], self._rest[here + len(OPEN) :]
        self._array, self._found = False, []
        self._state = self._lead
        return True

    # -- a block ---------------------------------------------------------------------------------------------------------

    def _lead(self) -> bool:
        """Skip the text that models write before the JSON object: white space, a bracket, a fence, a repeated tag."""
        match = LEAD.match(self._rest)
        assert match is not None
        after = self._rest[match.end() :]
        if not after or _begins(after, OPEN) or _begins(after, FENCE):
            return False
        if after[0] != "{":
            self._give_back()
            return True
        self._array = self._array or "[" in match[0]
        self._block.append(match[0])
        self._rest = after
        self._object, self._depth, self._quoted = [], 0, False
        self._state = self._object_state
        return True

    def _object_state(self) -> bool:
        """Read characters up to the closing brace of the JSON object."""
        rest, at = self._rest, 0
        while True:
            match = (IN_STRING if self._quoted else IN_OBJECT).search(rest, at)
            if match is None:
                return self._keep(rest, "")
            at = match.end()
            if match[0] == "\\":
                if at == len(rest):
                    return self._keep(rest[:-1], "\\")
                at += 1
            elif match[0] == '"':
                self._quoted = not self._quoted
            elif match[0] == "<":
                return self._broken(rest, at - 1)
            elif match[0] in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return self._object_ends(rest, at)

    def _keep(self, part: str, rest: str) -> bool:
        self._object.append(part)
        self._block.append(part)
        self._rest = rest
        return False

    def _broken(self, rest: str, at: int) -> bool:
        """Handle a `<` inside a call, at a place where JSON does not allow it.

        If the `<` starts the closing tag, the block is not a call but text. If the `<` starts anything else, continue to
        read the block.
        """
        if _begins(rest[at:], CLOSE):
            self._keep(rest[:at], rest[at:])
            return False
        self._keep(rest[: at + 1], rest[at + 1 :])
        if rest.startswith(CLOSE, at):
            self._block[-1] = rest[: at + len(CLOSE)]
            self._rest = rest[at + len(CLOSE) :]
            self._split()
        return True

    def _object_ends(self, rest: str, at: int) -> bool:
        self._keep(rest[:at], rest[at:])
        call = read_call("".join(self._object))
        self._object = []
        if call is not None:
            self._found.append(call)
        elif self._split():
            return True
        self._state = self._tail
        return True

    def _split(self) -> bool:
        """Handle an unterminated JSON string that contains the closing tag.

        The text up to the tag is passed on, and the rest is parsed again.
        """
        raw = "".join(self._block)
        if CLOSE not in raw:
            return False
        end = raw.index(CLOSE) + len(CLOSE)
        self._block, self._rest = [raw[:end]], raw[end:] + self._rest
        self._give_back()
        return True

    def _tail(self) -> bool:
        """Skip the text between the JSON object of a call and its closing tag.

        Stop if the next characters show that the closing tag is missing.
        """
        match = TAIL.match(self._rest)
        assert match is not None
        after = self._rest[match.end() :]
        if not after or _begins(after, CLOSE) or _begins(after, FENCE) or _begins(after, OPEN):
            return False
        if self._array and "]" not in match[0] and after[0] == ",":
            self._block.append(match[0] + ",")
            self._rest, self._state = after[1:], self._lead
            return True
        if after.startswith(CLOSE):
            self._block.append(match[0] + CLOSE)
            self._rest, self._state = after[len(CLOSE) :], self._after
            if not self._found:
                self._give_back()
            return True
        if self._settle() and (junk := JUNK.match(self._rest)) is not None and junk[0].strip():
            self._rest = self._rest[junk.end() :]
        self._state = self._text
        return True

    def _after(self) -> bool:
        """Skip repeated closing tags of a call, then pass on the call."""
        if self._span and self._rest[0] == "`":
            self._give_back()  # a code span that shows how a call is written
            return True
        match = AFTER.match(self._rest)
        assert match is not None
        self._settle()
        self._rest = self._rest[match.end() :]
        if not self._rest.strip() or _begins(self._rest.strip(), CLOSE):
            return False
        self._state = self._text
        return True

    def _settle(self) -> bool:
        """End a block between tags.

        Pass on the tool calls in the block, or its text if it has no calls. Return True if the block has tool calls.
        """
        found, text = self._found, "".join(self._block)
        self._found, self._block = [], []
        if not found:
            self._write_out(text)
            return False
        self._out.extend(found)
        self._calls += len(found)
        self._gap, self._bare = "", True
        return True

    def _give_back(self) -> None:
        """Emit the text of a block that is not a call, unchanged."""
        self._found = []
        self._settle()
        self._state = self._text


def _cut_off(text: str, tag: str) -> bool:
    """Return True if the stream ended inside `tag`: `text` is the beginning of `tag`, and is too long to be ordinary text."""
    return len(text) >= len(SURELY_MARKUP) and tag.startswith(text)


def _begins(text: str, tag: str) -> bool:
    """Return True if `tag` begins with `text` and is longer than `text`."""
    return len(text) < len(tag) and tag.startswith(text)
