"""What may come of a model's text, from the statements of the contract alone.

Strategy: the whole text is read at once, by patterns and the JSON decoder of Python, without pieces and states. Each part of the
text has a list of readings; the outcomes are their products. A part that no statement decides raises `Undecided`. It imports
nothing of ours: tests/laws holds it apart from the reference parser and from the suites.
"""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any, NamedTuple

OPEN, CLOSE = "<tool_call>", "</tool_call>"
DECLARED = frozenset({"getFileTree", "saveNote"})
LEAD = re.compile(r"(?:\s|<tool_call>|```\w*)*")
TAIL = re.compile(r"(?:[\s\]}>]|```)*")
AGAIN = re.compile(r"(?:\s*</tool_call>)*")
FENCED = re.compile(r"(?m)^(`{3,}|~{3,})[^\n`~]*\n(?:.*\n)*?\1[ \t]*$")
SPAN = re.compile(r"`[^`\n]+`")
NEXT = re.compile(rf"{OPEN}|{CLOSE}|`|~~~")
#: A number that a program loses digits of when it reads it as a double.
LONG = re.compile(r"\d{17}")


class Undecided(Exception):
    """No statement of the contract says what must come of the text."""


class Call(NamedTuple):
    """A call: its arguments as a JSON value, and as their text where decoding and encoding would lose something."""

    name: str
    arguments: Any
    verbatim: str | None = None


class Outcome(NamedTuple):
    """The calls and the text beside them; or an error of the request."""

    calls: tuple[Call, ...] = ()
    output: str = ""
    error: bool = False


class Verdict(NamedTuple):
    """The outcomes that are allowed, the best one first, and the statements that say so."""

    outcomes: list[Outcome]
    statements: list[str]


class Reading(NamedTuple):
    """One way to read a part of the text."""

    calls: tuple[Call, ...] = ()
    text: str = ""


def judge(text: str) -> Verdict:
    """Return what may come of a text, for a client that has declared `DECLARED`. Raises `Undecided`."""
    parts = _Parts(text)
    parts.read()
    outcomes: list[Outcome] = []
    for readings in product(*parts.readings):
        shown = "".join(each.text for each in readings)
        found = Outcome(tuple(call for each in readings for call in each.calls), shown if shown == text else squeezed(shown))
        if found not in outcomes:
            outcomes.append(found)
    if parts.may_fail:
        outcomes.append(Outcome(error=True))
    return Verdict(outcomes, sorted(parts.statements))


def squeezed(text: str) -> str:
    """Return the text with runs of blanks and line ends as one blank: no statement says what a removed call leaves of them."""
    return re.sub(r"[ \t\r\n]+", " ", text).strip(" ")


class _Parts:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.readings: list[list[Reading]] = []
        self.statements = {"PAY-98"}
        self.may_fail = False
        self.understood: Call | None = None
        self.wrong = False  # the present block breaks a rule, so that it may be dropped

    def read(self) -> None:
        while match := NEXT.search(self.text, self.at):
            self._says(self.text[self.at : match.start()])
            self.at = match.start()
            if match[0] == OPEN:
                self._block()
            elif match[0] == CLOSE:
                self._stray_closing_tag()
            else:
                self._code()
        rest = self.text[self.at :]
        cut = next((n for n in range(len(OPEN) - 1, 1, -1) if rest.endswith(OPEN[:n])), 0)
        self._says(rest[: len(rest) - cut])
        if cut:  # the end of the stream within a tag, or a text that ends so
            self.readings.append([Reading(text=OPEN[:cut]), Reading()])

    def _says(self, text: str) -> None:
        """PAY-98: text around a block stays text."""
        self.readings.append([Reading(text=text)])

    def _mistake(self, statement: str) -> None:
        """PAY-99, PAY-100: the block breaks a rule; no statement excludes an error of the request."""
        self.statements.add(statement)
        self.may_fail = self.wrong = True

    def _code(self) -> None:
        """Code shows how a call is written, or holds a call: no statement says which. It is shown whole, or is a call."""
        match = FENCED.match(self.text, self.at) if self._line_starts() else None
        match = match or SPAN.match(self.text, self.at)
        if match is None:
            if OPEN[:2] in self.text[self.at :]:
                raise Undecided("Markup follows a code block or span that is not closed.")
            self._says(self.text[self.at :])
            self.at = len(self.text)
            return
        self.at = match.end()
        if "tool_call>" not in match[0]:
            self._says(match[0])
            return
        edge = re.match(r"[`~]+", match[0])
        assert edge is not None
        inner = _Parts(match[0][edge.end() : -len(edge[0])])
        inner.read()
        if inner.may_fail:
            raise Undecided("A block in code breaks a rule.")
        run = [
            Reading(sum((one.calls for one in each), ()), "".join(one.text for one in each)) for each in product(*inner.readings)
        ]
        self.readings.append([Reading(text=match[0]), *(Reading(one.calls, edge[0] + one.text + edge[0]) for one in run)])

    def _line_starts(self) -> bool:
        return not self.text[: self.at].rpartition("\n")[2].strip()

    def _stray_closing_tag(self) -> None:
        """A closing tag without its opening tag: no call. What is beside it stays text, or is taken for the block's."""
        if any(len(each) > 1 or each[0].calls for each in self.readings) or CLOSE in self.text[self.at + len(CLOSE) :]:
            raise Undecided("A closing tag stands alone behind a block.")
        before = "".join(each[0].text for each in self.readings)
        self.at += len(CLOSE)
        self.readings = [[Reading(text=before), Reading(text=before + CLOSE), Reading()]]
        self._mistake("PAY-100")

    # -- a block ---------------------------------------------------------------------------------------------------------

    def _block(self) -> None:
        text, begin = self.text, self.at
        self.wrong, self.understood = False, None
        lead = LEAD.match(text, begin + len(OPEN))
        assert lead is not None
        if OPEN in lead[0]:
            self._mistake("PAY-100")
        if "`" in lead[0]:
            self._mistake("PAY-99")
        try:
            value, end = json.JSONDecoder(object_pairs_hook=_Members).raw_decode(text, lead.end())
        except ValueError:
            self._not_json(begin, lead.end())
            return
        tail = TAIL.match(text, end)
        assert tail is not None
        if tail[0].strip():
            self._mistake("PAY-99")
        calls, shown = self._calls(value), text[begin : tail.end()]
        rest = text[tail.end() :]
        if rest.startswith(CLOSE):
            again = AGAIN.match(text, tail.end() + len(CLOSE))
            assert again is not None
            self.at = again.end() if again[0].strip() else tail.end() + len(CLOSE)
            shown = text[begin : self.at]
            if again[0].strip():  # the block was whole before: it is a call, and only the repeated tag is dropped
                self.statements.add("PAY-99")
        elif tail[0].strip():
            raise Undecided("The block is not closed: what follows the object is a mistake, or a text.")
        elif rest == "" or CLOSE.startswith(rest):
            self._mistake("PAY-99")
            self.at = len(text)
        elif rest.startswith(OPEN):
            self._mistake("PAY-99")
            self.at = tail.end()
        else:
            raise Undecided("Text follows the object within the tags.")
        if calls is None:
            self._mistake("PAY-99")
            understood: list[Reading] = [Reading((self.understood,))] if self.understood else []
            self.readings.append([*understood, Reading(), Reading(text=shown)])
            return
        self.readings.append([Reading(each) for each in calls] + [Reading()] * self.wrong)
        if text[self.at : self.at + 1] == ">":  # a bracket behind the closing tag: markup, or a text
            self.statements.add("PAY-99")
            self.at += 1
            self.readings.append([Reading(), Reading(text=">")])

    def _not_json(self, begin: int, at: int) -> None:
        """No JSON: never a call. A whole block may be shown as it was written; what the end of the stream cuts off may not."""
        self._mistake("PAY-99")
        end = self.text.find(CLOSE, at)
        inner = self.text[at : end if end >= 0 else len(self.text)]
        if end < 0 and not inner.startswith(("{", "[")) and inner:
            raise Undecided("An opening tag stands in prose.")
        if '"' in inner and (end >= 0 or inner.startswith("[")):
            raise Undecided("The JSON is broken: where a string ends, and with it the block, is open.")
        if end >= 0 and self.text[end + len(CLOSE) :].lstrip().startswith(CLOSE):
            raise Undecided("A closing tag is repeated behind a block that is no call.")
        if OPEN in inner:
            raise Undecided("A block begins within one that is not closed.")
        self.at = end + len(CLOSE) if end >= 0 else len(self.text)
        self.readings.append([Reading(), *([Reading(text=self.text[begin : self.at])] if end >= 0 else [])])

    def _calls(self, value: Any) -> list[tuple[Call, ...]] | None:
        """The ways to read the JSON as calls; None if it is no call."""
        if isinstance(value, list):  # PAY-34: do NOT wrap the JSON object in an array
            self._mistake("PAY-99")
            if len(value) > 1:
                raise Undecided("Two calls stand in one array.")
            return self._calls(value[0]) if value else None
        if not isinstance(value, _Members):
            return None
        members = dict(value.pairs)
        name, arguments = members.get("name"), members.get("arguments", {})
        if len(members) != len(value.pairs) or members.keys() != {"name", "arguments"}:
            self._mistake("PAY-34")  # keys "name" and "arguments", no other
        if not isinstance(name, str):
            self._rename(members)
            return None
        if name not in DECLARED:
            self._mistake("PAY-14")
        verbatim = None
        if isinstance(arguments, str):
            if LONG.search(arguments):
                verbatim = arguments
            if arguments == "":
                self._mistake("PAY-34")  # a tool without parameters has the arguments "{}"
            try:
                arguments = json.loads(arguments or "{}")
            except ValueError:
                raise Undecided("The arguments are a string that is no JSON.") from None
        else:
            self._mistake("PAY-34")  # the "arguments" field must be a JSON string
            arguments = {} if arguments is None else _plain(arguments)
        if not isinstance(arguments, dict):
            raise Undecided("The arguments are JSON, and no object.")
        found: list[tuple[Call, ...]] = [(Call(name, arguments, verbatim),)]
        whole = json.dumps(arguments, ensure_ascii=False)
        if (sound := re.sub("[\ud800-\udfff]", "\ufffd", whole)) != whole:  # half a pair: no statement says what becomes of it
            found.append((Call(name, json.loads(sound)),))
        return found

    def _rename(self, members: dict[str, Any]) -> None:
        """Other keys than `name` and `arguments`: understood, dropped, or shown whole as it was written."""
        name, arguments = members.get("tool"), _plain(members.get("parameters"))
        if isinstance(name, str) and isinstance(arguments, dict):
            self.understood = Call(name, arguments)


class _Members:
    """A JSON object that keeps its repeated keys."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs


def _plain(value: Any) -> Any:
    if isinstance(value, _Members):
        return {key: _plain(each) for key, each in value.pairs}
    return [_plain(each) for each in value] if isinstance(value, list) else value
