"""How input becomes items."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

from codex_replay.reference.proxy.asking import normalise
from codex_replay.reference.proxy.asking.normalise import Item, Transcript
from codex_replay.reference.proxy.errors import bad_request
from tests.strength.proxy_variants.patching import after, in_params, variant


def in_items(change: Callable[[list[Item]], list[Item]]) -> None:
    """Change the items of every request."""
    after(Transcript, "items", lambda found, self: tuple(change(list(found))) or (Item("text", ""),))


def in_lines(change: Callable[[str], str]) -> None:
    """Change every text item."""
    in_items(lambda found: [Item(each.kind, change(each.value)) if each.kind == "text" else each for each in found])


@variant
def string_in_lower_case() -> None:
    def request(body: Any, settings: Any) -> Any:
        return old({**body, "input": body["input"].swapcase()} if isinstance(body.get("input"), str) else body, settings)

    from codex_replay.reference.proxy import app

    old = app.responses_request
    app.responses_request = request


@variant
def string_in_two_items() -> None:
    def cut(found: list[Item]) -> list[Item]:
        return [Item("text", part) for part in re.split("(?<=Just) ", found[0].value)] if len(found) == 1 else found

    in_items(cut)


@variant
def crlf_becomes_lf() -> None:
    in_lines(lambda text: text.replace("\r\n", "\n"))


@variant
def line_separators_become_line_ends() -> None:
    in_lines(lambda text: "\n".join(text.splitlines()))


@variant
def characters_composed() -> None:
    in_lines(lambda text: unicodedata.normalize("NFD", text))


@variant
def tags_escaped() -> None:
    in_lines(lambda text: text.replace("<", "&lt;"))


@variant
def blanks_collapsed() -> None:
    in_lines(lambda text: re.sub(r"[ \t]+", " ", text))


@variant
def roles_unsaid() -> None:
    in_lines(lambda text: re.sub(r"(?m)^\[\w+\] ", "", text))


@variant
def assistants_said_as_users() -> None:
    in_lines(lambda text: re.sub(r"(?m)^\[assistant\]", "[user]", text))


@variant
def assistants_left_out() -> None:
    in_lines(lambda text: "\n".join(line for line in text.split("\n") if not line.startswith("[assistant]")))


@variant
def roles_with_a_colon() -> None:
    in_lines(lambda text: re.sub(r"(?m)^\[(\w+)\]", r"\1:", text))


@variant
def only_the_last_message() -> None:
    def change(text: str) -> str:
        at = text.rfind("\n[user]")
        return text[at + 1 :] if at >= 0 else text

    in_lines(change)


@variant
def only_the_first_part() -> None:
    def content(role: str, parts: Any, where: str, transcript: Any) -> None:
        old(role, parts[:1] if isinstance(parts, list) else parts, where, transcript)

    old = normalise._content
    normalise._content = content


@variant
def parts_reversed() -> None:
    def content(role: str, parts: Any, where: str, transcript: Any) -> None:
        old(role, parts[::-1] if isinstance(parts, list) else parts, where, transcript)

    old = normalise._content
    normalise._content = content


@variant
def text_parts_refused() -> None:
    def request(body: Any, settings: Any) -> Any:
        if '"type": "text"' in __import__("json").dumps(body.get("input")):
            raise bad_request("A part of the type 'text' cannot be passed on.", "input")
        return old(body, settings)

    from codex_replay.reference.proxy import app

    old = app.responses_request
    app.responses_request = request


@variant
def images_left_out() -> None:
    in_items(lambda found: [each for each in found if each.kind != "image"])


@variant
def images_first() -> None:
    in_items(lambda found: sorted(found, key=lambda each: each.kind != "image"))


@variant
def images_at_the_end() -> None:
    in_items(lambda found: sorted(found, key=lambda each: each.kind == "image"))


@variant
def images_twice() -> None:
    in_items(lambda found: [copy for each in found for copy in ([each, each] if each.kind == "image" else [each])])


@variant
def image_urls_cut() -> None:
    in_items(lambda found: [Item(each.kind, each.value[:80]) if each.kind == "image" else each for each in found])


@variant
def images_without_anchor() -> None:
    def image(self: Any, role: str, url: str) -> None:
        self._flush()
        self._items.append(Item("image", url))

    Transcript.image = image


@variant
def images_as_text() -> None:
    def image(self: Any, role: str, url: str) -> None:
        self._lines.append(f"[{role}] [image {url}]")

    Transcript.image = image


@variant
def calls_left_out() -> None:
    normalise._call = lambda *_: None


@variant
def calls_without_arguments() -> None:
    def call(name: Any, call_id: Any, arguments: Any, transcript: Any) -> None:
        transcript.line(f"[function_call name={name} call_id={call_id}]")

    normalise._call = call


@variant
def calls_without_name() -> None:
    def call(name: Any, call_id: Any, arguments: Any, transcript: Any) -> None:
        transcript.line(f"[function_call call_id={call_id}] {arguments}")

    normalise._call = call


@variant
def calls_as_said_by_the_assistant() -> None:
    def call(name: Any, call_id: Any, arguments: Any, transcript: Any) -> None:
        transcript.line(f"[assistant] {name}({arguments})")

    normalise._call = call


@variant
def outputs_left_out() -> None:
    normalise._output = lambda *_: None


@variant
def outputs_before_calls() -> None:
    in_lines(lambda text: "\n".join(sorted(text.split("\n"), key=lambda line: line.startswith("[function_call"))))


@variant
def tool_output_refused() -> None:
    def item(given: Any, where: str, *more: Any) -> None:
        if isinstance(given, dict) and given.get("type") == "tool_output":
            raise bad_request(f"{where} is of the type 'tool_output', which is unknown.", where)
        old(given, where, *more)

    old = normalise._input_item
    normalise._input_item = item


@variant
def system_items_are_prompt_too() -> None:
    def item(given: Any, where: str, transcript: Any, system: list[str]) -> None:
        if isinstance(given, dict) and given.get("role") in ("system", "developer"):
            transcript.line(f"[{given['role']}] {normalise._text_of(given.get('content'), where)}")
        old(given, where, transcript, system)

    old = normalise._input_item
    normalise._input_item = item


@variant
def developer_items_are_prompt() -> None:
    def item(given: Any, where: str, transcript: Any, system: list[str]) -> None:
        if isinstance(given, dict) and given.get("role") == "developer":
            transcript.line(f"[developer] {normalise._text_of(given.get('content'), where)}")
            return
        old(given, where, transcript, system)

    old = normalise._input_item
    normalise._input_item = item


@variant
def items_of_the_message_without_images() -> None:
    in_params("sendUserMessage", lambda params, *_: params.update(items=[i for i in params["items"] if i["type"] == "text"]))


@variant
def an_item_for_each_line() -> None:
    in_items(lambda found: [Item(item.kind, line) for item in found for line in re.split(r"\n(?=\[)", item.value)])


@variant
def text_behind_an_image_in_two_items() -> None:
    def cut(found: list[Item]) -> list[Item]:
        if len(found) < 3:
            return found
        return [*found[:-1], *(Item("text", line) for line in found[-1].value.split("\n", 1))]

    in_items(cut)


@variant
def outputs_as_said_by_the_user() -> None:
    in_lines(lambda text: re.sub(r"(?m)^\[tool_output[^\]]*\]", "[user]", text))


@variant
def outputs_with_another_call_id() -> None:
    in_lines(lambda text: re.sub(r"(?m)^\[tool_output[^\]]*\]", "[tool_output call_id=call_1]", text))


@variant
def string_stripped() -> None:
    in_lines(str.strip)
