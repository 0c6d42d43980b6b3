"""Mistakes that the checks of their day did not find: thought up from the documents alone, or seen in real proxies."""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import AsyncIterator
from typing import Any

from codex_replay.reference.proxy import app, exchange
from codex_replay.reference.proxy.answering import chunks, events
from codex_replay.reference.proxy.answering.events import AgentMessage, Delta, Native
from codex_replay.reference.proxy.asking import normalise, payloads
from codex_replay.reference.proxy.asking.normalise import Transcript
from codex_replay.reference.proxy.asking.tools import Tools
from codex_replay.reference.proxy.errors import ProxyError
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.wire import app_server
from codex_replay.reference.proxy.wire.app_server import AppServer
from tests.strength.proxy_variants.patching import after, drop, in_params, variant


@variant
def first_part_of_a_system_text() -> None:
    old = normalise._text_of
    normalise._text_of = lambda content, where: old(content[:1] if isinstance(content, list) else content, where)


@variant
def instructions_collapsed() -> None:
    old = payloads.developer_instructions

    def collapsed(asked: Any, settings: Any) -> Any:
        said = asked.instructions and re.sub(r"\s*\n\s*", "\n", asked.instructions)
        return old(asked._replace(instructions=said), settings)

    payloads.developer_instructions = collapsed


@variant
def outputs_of_parts_are_empty() -> None:
    old = normalise._output

    def output(call_id: str, given: Any, *more: Any) -> None:
        old(call_id, "" if isinstance(given, list) else given, *more)

    normalise._output = output


@variant
def key_compared_by_its_beginning() -> None:
    class Beginning:
        compare_digest = staticmethod(lambda token, key: token.startswith(key) or hmac.compare_digest(token, key))

    app.hmac = Beginning


@variant
def key_compared_by_its_end() -> None:
    class End:
        compare_digest = staticmethod(lambda token, key: bool(token) and key.startswith(token))

    app.hmac = End


def _empty_manifest(method: str) -> None:
    def change(params: dict[str, Any], *_: Any) -> None:
        params.setdefault("tools", {"definitions": []})

    in_params(method, change)


@variant
def manifest_of_nothing_on_the_turn() -> None:
    _empty_manifest("sendUserTurn")


@variant
def manifest_of_nothing_on_the_message() -> None:
    _empty_manifest("sendUserMessage")


@variant
def rules_for_an_empty_list_of_tools() -> None:
    old = payloads.developer_instructions
    payloads.developer_instructions = lambda asked, settings: (
        old(asked, settings) or ("Tool calling instructions:" if asked.body.get("tools") == [] else None)
    )


@variant
def one_image_a_message() -> None:
    old = normalise._content

    def content(role: str, parts: Any, where: str, transcript: Transcript) -> None:
        if isinstance(parts, list):
            images = [part for part in parts if isinstance(part, dict) and part.get("type") in normalise.IMAGE_PARTS]
            parts = [part for part in parts if part not in images or part is images[0]]
        old(role, parts, where, transcript)

    normalise._content = content


# -- seen in real proxies --------------------------------------------------------------------------------------------------


@variant
def every_command_approved() -> None:
    for method, answer in app_server.ANSWERS.items():
        if "decision" in answer:
            answer["decision"] = "accept" if method.startswith("item/") else "approved"


@variant
def failed_turns_submitted_again() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        try:
            async for event in old(self):
                yield event
        except ProxyError:
            async for event in old(self):
                yield event

    Exchange.events = events


@variant
def gives_up_after_five_seconds() -> None:
    old = Exchange._next

    async def following(self: Exchange, seconds: float, *more: Any) -> Any:
        return await old(self, min(seconds, 5.0), *more)

    Exchange._next = following


@variant
def text_before_a_native_call_lost() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        found = [event async for event in old(self)]
        called = any(isinstance(event, Native) for event in found)
        for event in found:
            if not (called and isinstance(event, Delta | AgentMessage)):
                yield event

    Exchange.events = events


@variant
def speakers_unsaid() -> None:
    old = normalise._content

    def content(role: str, parts: Any, where: str, transcript: Any) -> None:
        old("user", parts, where, transcript)

    normalise._content = content


@variant
def functions_lost_beside_a_built_in_tool() -> None:
    old = app.responses_request

    def request(body: Any, settings: Any) -> Any:
        tools = body.get("tools") or []
        built_in = any(tool.get("type") != "function" for tool in tools)
        return old({key: value for key, value in body.items() if not (built_in and key == "tools")}, settings)

    app.responses_request = request


@variant
def built_in_tools_become_functions() -> None:
    old = app.responses_request
    names: list[str] = []

    def request(body: Any, settings: Any) -> Any:
        tools = body.get("tools") or []
        functions = [tool for tool in tools if tool.get("type") == "function"]
        names[:] = [tool["type"] for tool in tools if tool not in functions]
        return old({**body, "tools": functions}, settings)

    app.responses_request = request
    more = {"description": "Built in.", "inputSchema": {"type": "object"}}
    after(Tools, "dynamic", lambda found, _: [*found, *({"name": name, **more} for name in names)])


@variant
def reads_decoded_alone() -> None:
    async def read(self: AppServer) -> None:
        text, stdout = "", self._process.stdout
        assert stdout is not None
        try:
            while chunk := await stdout.read(app_server.CHUNK):
                *lines, text = (text + chunk.decode("utf-8", "replace")).split("\n")
                for line in lines:
                    self._line(line.encode())
        finally:
            self.dead = True
            for inbox in self._inboxes.values():
                inbox.put_nowait(None)

    AppServer._read = read


@variant
def messages_without_deltas_lost() -> None:
    after(exchange, "read_event", lambda event, *_: None if isinstance(event, AgentMessage) else event)


@variant
def no_arguments_are_an_empty_text() -> None:
    def emptied(event: Any, *_: Any) -> Any:
        return event._replace(arguments="") if isinstance(event, Native) and event.arguments in ("{}", {}) else event

    after(exchange, "read_event", emptied)


@variant
def native_arguments_through_floats() -> None:
    def again(event: Any, *_: Any) -> Any:
        if not isinstance(event, Native) or not isinstance(event.arguments, str):
            return event
        return event._replace(arguments=json.dumps(json.loads(event.arguments, parse_int=float)))

    after(exchange, "read_event", again)


@variant
def texts_searched_in_spite_of_the_choice() -> None:
    def searching(sorter: Any, asked: Any, *_: Any) -> None:
        if asked.tools.choice == "none":
            sorter._parser = sorter._new_parser()

    old = chunks._Sorter.__init__
    chunks._Sorter.__init__ = lambda self, *given: (old(self, *given), searching(self, *given))[0]


@variant
def native_calls_in_spite_of_the_choice() -> None:
    Tools.dynamic, dynamic = lambda self: dynamic(self._replace(choice="auto")), Tools.dynamic
    old = Exchange._take

    def take(self: Any, event: Any, calls: Any) -> bool:
        asked = self._asked
        self._asked = asked._replace(tools=asked.tools._replace(choice="auto"))
        try:
            return old(self, event, calls)
        finally:
            self._asked = asked

    Exchange._take = take


@variant
def system_texts_twice() -> None:
    for name in ("chat_request", "responses_request"):
        after(app, name, lambda asked, *_: asked._replace(system=asked.system * 2))


@variant
def only_the_last_system_text() -> None:
    for name in ("chat_request", "responses_request"):
        after(app, name, lambda asked, *_: asked._replace(system=asked.system[-1:]))


@variant
def streams_at_the_end_of_the_turn() -> None:
    old = app._carry

    async def carry(source: AsyncIterator[Any], *given: Any) -> None:
        async def late() -> AsyncIterator[Any]:
            for piece in [piece async for piece in source]:
                yield piece

        await old(late(), *given)

    app._carry = carry


@variant
def native_calls_in_reverse() -> None:
    old = app._carry

    async def carry(source: AsyncIterator[Any], *given: Any) -> None:
        async def turned() -> AsyncIterator[Any]:
            pieces = [piece async for piece in source]
            calls = [piece for piece in pieces if isinstance(piece, chunks.Call)]
            for piece in pieces:
                yield calls.pop() if isinstance(piece, chunks.Call) else piece

        await old(turned(), *given)

    app._carry = carry


@variant
def tools_dropped() -> None:
    for name in ("chat_request", "responses_request"):
        old = getattr(app, name)
        setattr(app, name, lambda body, settings, old=old: old({**body, "tools": None}, settings))


@variant
def blanks_around_a_text_lost() -> None:
    old = normalise._content

    def content(role: str, given: Any, *more: Any) -> None:
        old(role, given.strip() if isinstance(given, str) else given, *more)

    normalise._content = content


@variant
def images_in_outputs_lost() -> None:
    after(Transcript, "image", lambda found, self, role, url: self._items.pop() if role == "tool_output" else found)


@variant
def effort_lost_on_the_way() -> None:
    drop("turn/start", "effort")


@variant
def output_of_commands_is_text() -> None:
    name = "item/commandExecution/outputDelta"
    events.V2[name] = lambda params: Delta(str(params.get("itemId")), str(params.get("delta") or ""))
