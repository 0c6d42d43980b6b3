"""How calls are found in what the model says, and how they are handed on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from codex_replay.reference.proxy.answering import chunks, tool_calls
from codex_replay.reference.proxy.answering.tool_calls import CLOSE, OPEN, ToolCallParser
from codex_replay.reference.proxy.wire import text_json
from codex_replay.reference.proxy.wire.text_json import ToolCall
from tests.strength.proxy_variants.patching import after, variant


def in_parsed(change: Callable[[list[Any]], list[Any]]) -> None:
    """Change the texts and calls that are found: `change` gets those of one feed."""
    after(ToolCallParser, "_run", lambda found, self: change(found))


def in_calls(change: Callable[[ToolCall], ToolCall]) -> None:
    """Change every call that is found in the text."""
    in_parsed(lambda found: [change(each) if isinstance(each, ToolCall) else each for each in found])


def in_arguments(change: Callable[[str], str]) -> None:
    """Change the arguments of every call that is found in the text."""
    in_calls(lambda call: ToolCall(call.name, change(call.arguments)))


class ByPattern:
    """What many a proxy has for a parser: all text is kept to the end, and a pattern finds the calls in it."""

    def __init__(self) -> None:
        self._said = ""

    def feed(self, text: str) -> list[Any]:
        """Keep it."""
        self._said += text
        return []

    def close(self) -> list[Any]:
        """Find the calls."""
        found: list[Any] = []
        for part in re.split(r"(<tool_call>.*?</tool_call>)", self._said, flags=re.S):
            call = tool_calls.read_call(part[len(OPEN) : -len(CLOSE)].strip()) if part.startswith(OPEN) else None
            found.append(call or part)
        return [part for part in found if part]


def in_a_sorter(change: Callable[[], Any]) -> None:
    """Use another parser, or the same one in another way."""
    chunks.ToolCallParser = change


@variant
def first_closing_tag_ends_the_call() -> None:
    in_a_sorter(lambda: ByPattern())


@variant
def pieces_read_alone() -> None:
    class Alone:
        def feed(self, text: str) -> list[Any]:
            parser = ToolCallParser()
            return [*parser.feed(text), *parser.close()]

        def close(self) -> list[Any]:
            return []

    in_a_sorter(Alone)


@variant
def tags_only_when_whole() -> None:
    """A tag that two pieces share is not seen."""

    def text(self: Any) -> bool:
        rest = self._rest
        if OPEN in rest:
            return bool(old(self))
        self._write_out(rest)
        self._rest = ""
        return False

    old = ToolCallParser._text
    ToolCallParser._text = text


@variant
def calls_not_looked_for() -> None:
    class Blind:
        def feed(self, text: str) -> list[Any]:
            return [text]

        def close(self) -> list[Any]:
            return []

    in_a_sorter(Blind)


@variant
def only_the_first_call() -> None:
    def run(found: list[Any], self: Any) -> list[Any]:
        kept = []
        for each in found:
            if isinstance(each, ToolCall):
                if getattr(self, "had_one", False):
                    continue
                self.had_one = True
            kept.append(each)
        return kept

    after(ToolCallParser, "_run", run)


@variant
def equal_calls_merged() -> None:
    def run(found: list[Any], self: Any) -> list[Any]:
        seen = self.__dict__.setdefault("seen", set())
        kept = []
        for each in found:
            if not isinstance(each, ToolCall) or each not in seen:
                kept.append(each)
            if isinstance(each, ToolCall):
                seen.add(each)
        return kept

    after(ToolCallParser, "_run", run)


@variant
def text_before_a_call_lost() -> None:
    in_a_sorter(lambda: AtOnce(lambda found: found[next((i for i, x in enumerate(found) if isinstance(x, ToolCall)), 0) :]))


@variant
def text_after_a_call_lost() -> None:
    def run(found: list[Any], self: Any) -> list[Any]:
        kept = []
        for each in found:
            if isinstance(each, str) and getattr(self, "called", False):
                continue
            self.called = getattr(self, "called", False) or isinstance(each, ToolCall)
            kept.append(each)
        return kept

    after(ToolCallParser, "_run", run)


@variant
def calls_in_reverse() -> None:
    in_a_sorter(lambda: AtOnce(lambda found: found[::-1]))


class AtOnce:
    """The honest parser, whose findings come all at the end and are changed there."""

    def __init__(self, change: Callable[[list[Any]], list[Any]]) -> None:
        self._parser, self._change = ToolCallParser(), change
        self._found: list[Any] = []

    def feed(self, text: str) -> list[Any]:
        """Keep what is found."""
        self._found += self._parser.feed(text)
        return []

    def close(self) -> list[Any]:
        """Hand on what was found."""
        return self._change(self._found + self._parser.close())


@variant
def text_trimmed() -> None:
    in_parsed(lambda found: [each.strip(" ") if isinstance(each, str) else each for each in found])


@variant
def less_than_held_back() -> None:
    in_parsed(lambda found: [each.replace("<", "") if isinstance(each, str) else each for each in found])


@variant
def arrays_not_understood() -> None:
    tool_calls.LEAD = re.compile(r"(?:\s|```\w*|<tool_call>)*")


@variant
def fences_within_not_understood() -> None:
    tool_calls.LEAD = re.compile(r"(?:\s|\[|<tool_call>)*")


@variant
def a_trailing_bracket_spoils_the_call() -> None:
    tool_calls.TAIL = re.compile(r"(?:[\s\]}]|```)*")
    tool_calls.JUNK = re.compile(r"[\s\]}]*")


@variant
def a_second_closing_tag_is_text() -> None:
    tool_calls.AFTER = re.compile(r">*")


@variant
def object_arguments_not_understood() -> None:
    def read(source: str) -> ToolCall | None:
        try:
            value = json.loads(source).get("arguments", "")
        except (ValueError, AttributeError):
            value = ""
        return old(source) if isinstance(value, str) else None

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def empty_arguments_stay_empty() -> None:
    def read(source: str) -> ToolCall | None:
        found = old(source)
        return ToolCall(found.name, "") if found and '"arguments":""' in source else found

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def missing_arguments_spoil_the_call() -> None:
    def read(source: str) -> ToolCall | None:
        return old(source) if "arguments" in source else None

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def first_of_equal_keys() -> None:
    def read(source: str) -> ToolCall | None:
        found = old(source)
        first = re.search(r'"name"\s*:\s*"(\w+)"', source)
        return ToolCall(first[1], found.arguments) if found and first else found

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def renamed_keys_call_without_arguments() -> None:
    def read(source: str) -> ToolCall | None:
        found = old(source)
        name = re.search(r'"(?:tool|function)"\s*:\s*"(\w+)"', source)
        return ToolCall(name[1], "{}") if found is None and name else found

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def name_before_arguments_only() -> None:
    def read(source: str) -> ToolCall | None:
        return None if re.match(r'\{\s*"arguments"', source) else old(source)

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def arguments_through_floats() -> None:
    def again(arguments: str) -> str:
        try:
            return json.dumps(json.loads(arguments, parse_int=float), ensure_ascii=False)
        except ValueError:
            return arguments

    in_arguments(again)


@variant
def arguments_without_separators() -> None:
    in_arguments(lambda said: re.sub("[\u2028\u2029\u0085]", "", said))


@variant
def arguments_in_the_basic_plane() -> None:
    in_arguments(lambda said: re.sub("[\U00010000-\U0010ffff]", "\ufffd", said))


@variant
def arguments_cut_at_64k() -> None:
    in_arguments(lambda said: said[:65536])


@variant
def arguments_twice_encoded() -> None:
    in_arguments(json.dumps)


@variant
def code_blocks_never_end() -> None:
    def mark(self: Any, run: str) -> None:
        fence = self._fence
        old(self, run)
        self._fence = fence or self._fence

    old = ToolCallParser._mark
    ToolCallParser._mark = mark


@variant
def cut_off_markup_shown() -> None:
    old = ToolCallParser.close

    def close(self: Any) -> list[Any]:
        held = "".join(self._block)
        found = old(self)
        return [*found, held] if held and not any(isinstance(each, ToolCall) for each in found) else found

    ToolCallParser.close = close


@variant
def unknown_tools_shown_as_markup() -> None:
    def change(call: ToolCall) -> Any:
        return call if call.name in ("getFileTree", "saveNote", "t") else f"{OPEN}{json.dumps(call._asdict())}{CLOSE}"

    in_parsed(lambda found: [change(each) if isinstance(each, ToolCall) else each for each in found])


@variant
def tags_removed_from_what_is_no_call() -> None:
    in_parsed(lambda found: [x.replace(OPEN, "").replace(CLOSE, "") if isinstance(x, str) else x for x in found])


@variant
def opening_tag_in_a_string_begins_a_call() -> None:
    def read(source: str) -> ToolCall | None:
        found = old(source)
        return None if OPEN in source else found

    old = text_json.read_call
    tool_calls.read_call = read


@variant
def braces_counted_in_strings() -> None:
    tool_calls.IN_STRING = re.compile(r'["\\{}]')
    old = ToolCallParser._object_state

    def state(self: Any) -> bool:
        self._quoted = False
        return bool(old(self))

    tool_calls.IN_OBJECT = re.compile(r"[{}]")
    ToolCallParser._object_state = state


@variant
def tool_names_in_lower_case() -> None:
    in_calls(lambda call: ToolCall(call.name.lower(), call.arguments))


# -- handing them on -------------------------------------------------------------------------------------------------------


@variant
def call_ids_by_name() -> None:
    old = chunks._Sorter._sorted

    def sorted_(self: Any, parsed: list[Any]) -> Iterable[Any]:
        for piece in old(self, parsed):
            yield chunks.Call(f"call_{piece.name}", piece.name, piece.arguments) if isinstance(piece, chunks.Call) else piece

    chunks._Sorter._sorted = sorted_


@variant
def call_ids_start_again() -> None:
    old = chunks._Sorter._sorted

    def sorted_(self: Any, parsed: list[Any]) -> Iterable[Any]:
        for piece in old(self, parsed):
            if isinstance(piece, chunks.Call):
                self.number = getattr(self, "number", -1) + 1
                yield chunks.Call(f"call_{self.number}", piece.name, piece.arguments)
            else:
                yield piece

    chunks._Sorter._sorted = sorted_


@variant
def call_ids_empty() -> None:
    old = chunks._Sorter._sorted

    def sorted_(self: Any, parsed: list[Any]) -> Iterable[Any]:
        for piece in old(self, parsed):
            yield chunks.Call("", piece.name, piece.arguments) if isinstance(piece, chunks.Call) else piece

    chunks._Sorter._sorted = sorted_


@variant
def finish_reason_stop_with_calls() -> None:
    from codex_replay.reference.proxy.answering.chat import ChatAnswer

    ChatAnswer._finish = "stop"


@variant
def calls_without_declared_tools() -> None:
    from codex_replay.reference.proxy.asking.tools import Tools

    Tools.names = property(lambda self: {"getFileTree"} | {each["name"] for each in self.functions})


@variant
def output_mode_header_ignored() -> None:
    from codex_replay.reference.proxy import app

    app._mode = lambda request, usual: usual


@variant
def output_mode_environment_ignored() -> None:
    from codex_replay.reference.proxy import app

    old = app._mode
    app._mode = lambda request, usual: old(request, "openai-json")


@variant
def xml_arguments_as_object() -> None:
    def markup(name: str, arguments: str) -> str:
        return f'{OPEN}{{"name":{json.dumps(name)},"arguments":{arguments}}}{CLOSE}'

    chunks.call_markup = markup


@variant
def xml_tag_not_closed() -> None:
    old = chunks.call_markup
    chunks.call_markup = lambda name, arguments: old(name, arguments).removesuffix(CLOSE)


@variant
def a_second_opening_tag_spoils_the_call() -> None:
    tool_calls.LEAD = re.compile(r"(?:\s|\[|```\w*)*")


@variant
def an_extra_brace_spoils_the_call() -> None:
    tool_calls.TAIL = re.compile(r"(?:[\s\]>]|```)*")
    tool_calls.JUNK = re.compile(r"[\s\]>]*")
