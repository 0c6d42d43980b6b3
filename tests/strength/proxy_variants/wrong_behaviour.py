"""How the proxy behaves towards the app-server and its clients over time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from codex_replay.reference.proxy import app, exchange
from codex_replay.reference.proxy.answering import chunks
from codex_replay.reference.proxy.answering.events import AgentMessage, Delta, Ended, Failed, Usage
from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.errors import ProxyError
from codex_replay.reference.proxy.exchange import Exchange
from codex_replay.reference.proxy.wire import app_server
from codex_replay.reference.proxy.wire.app_server import AppServer
from codex_replay.reference.proxy.wire.pool import Pool
from tests.strength.proxy_variants.patching import after, drop, in_params, put, variant


def in_events(change: Any) -> None:
    """Change what a message of the server is taken for: `change(event)` returns the new one, or None."""
    after(exchange, "read_event", lambda event, *_: None if event is None else change(event))


def in_deltas(change: Any) -> None:
    """Change the text of every delta."""
    in_events(lambda event: event._replace(text=change(event.text)) if isinstance(event, Delta | AgentMessage) else event)


@variant
def every_turn_submitted_twice() -> None:
    old = Exchange._begin_v2

    async def begin(self: Exchange) -> None:
        server = self._server
        assert server is not None
        other = await server.request("thread/start", payloads.thread_start(self._asked, self._settings))
        await server.ask("turn/start", payloads.turn_start(other["thread"]["id"], self._asked))
        await old(self)

    Exchange._begin_v2 = begin


@variant
def ends_at_the_first_message() -> None:
    in_events(lambda event: event)
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        async for event in old(self):
            yield event
            if isinstance(event, AgentMessage):
                return

    Exchange.events = events


@variant
def messages_said_twice() -> None:
    old = chunks._unsaid

    def unsaid(sent: list[str], event: Any) -> str:
        old(sent, event)
        return str(event.text)

    chunks._unsaid = unsaid


@variant
def reasoning_is_text() -> None:
    from codex_replay.reference.proxy.answering import events

    events.V2["item/reasoning/summaryTextDelta"] = lambda params: Delta(str(params.get("itemId")), str(params.get("delta") or ""))


@variant
def deltas_trimmed() -> None:
    in_deltas(lambda text: text.strip(" "))


@variant
def separators_become_line_ends() -> None:
    in_deltas(lambda text: text.replace("\u2028", "\n"))


@variant
def equal_deltas_merged() -> None:
    old = chunks._unsaid

    def unsaid(sent: list[str], event: Any) -> str:
        if isinstance(event, Delta) and sent and sent[-1] == event.text:
            return ""
        return old(sent, event)

    chunks._unsaid = unsaid


@variant
def large_deltas_cut() -> None:
    in_deltas(lambda text: text[:65536])


@variant
def astral_characters_lost() -> None:
    in_deltas(lambda text: "".join(c if c < "\U00010000" else "\ufffd" for c in text))


# -- faults ----------------------------------------------------------------------------------------------------------------


def in_errors(change: Any) -> None:
    """Change the error of a failed turn: `change(error)` returns the new one."""
    in_events(lambda event: Failed(change(event.error)) if isinstance(event, Failed) else event)


@variant
def every_fault_is_500() -> None:
    in_errors(lambda error: ProxyError(500, error.message))


@variant
def limits_are_server_errors() -> None:
    in_errors(lambda error: ProxyError(503, error.message) if error.status == 429 else error)


@variant
def long_prompts_are_server_errors() -> None:
    in_errors(lambda error: ProxyError(502, error.message) if error.status == 400 else error)


@variant
def server_errors_are_bad_requests() -> None:
    in_errors(lambda error: ProxyError(400, error.message) if error.status >= 500 else error)


@variant
def faults_without_a_message() -> None:
    in_errors(lambda error: ProxyError(error.status, ""))


@variant
def always_at_capacity() -> None:
    async def events(self: Exchange) -> AsyncIterator[Any]:
        nothing: list[Any] = []
        for event in nothing:
            yield event
        raise ProxyError(429, "This proxy is busy.", code="rate_limit_exceeded")

    Exchange.events = events


@variant
def answers_before_the_fault() -> None:
    old = Exchange._begin_v2

    async def begin(self: Exchange) -> None:
        await old(self)
        raise ProxyError(502, "The app-server will fail.", code="failed")

    Exchange._begin_v2 = begin


@variant
def faults_wait_for_an_idle_timeout() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        try:
            async for event in old(self):
                yield event
        except ProxyError:
            await asyncio.sleep(2.5)
            raise

    Exchange.events = events


@variant
def faults_end_well() -> None:
    in_events(lambda event: Ended(False) if isinstance(event, Failed) else event)


@variant
def faults_are_text() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        try:
            async for event in old(self):
                yield event
        except ProxyError as error:
            yield Delta("error", f"Sorry: {error.message}")

    Exchange.events = events


@variant
def streams_break_off_without_a_word() -> None:
    from codex_replay.reference.proxy.answering.chat import ChatAnswer
    from codex_replay.reference.proxy.answering.responses import ResponsesAnswer

    old = app._carry

    async def carry(source: Any, asked: Any, shape: Any, answer: Any) -> None:
        try:
            await old(source, asked, shape, answer)
        except ProxyError:
            if not asked.stream:
                raise
            await answer.start(app.STREAM)
            await answer.end()

    app._carry = carry
    for shape in (ChatAnswer, ResponsesAnswer):
        shape.fail = lambda self, error: []


@variant
def failed_streams_are_completed() -> None:
    from codex_replay.reference.proxy.answering.chunks import Done

    old = app._carry

    async def carry(source: Any, asked: Any, shape: Any, answer: Any) -> None:
        async def patient() -> AsyncIterator[Any]:
            try:
                async for piece in source:
                    yield piece
            except ProxyError:
                if not asked.stream:
                    raise
                yield Done(None)

        await old(patient(), asked, shape, answer)

    app._carry = carry


@variant
def a_fault_is_remembered() -> None:
    kept: list[ProxyError] = []
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        if kept:
            raise kept.pop()
        try:
            async for event in old(self):
                yield event
        except ProxyError as error:
            kept.append(error)
            raise

    Exchange.events = events


# -- what reaches the model ------------------------------------------------------------------------------------------------


@variant
def schema_does_not_reach_the_model() -> None:
    drop("turn/start", "outputSchema")


@variant
def schema_in_the_thread() -> None:
    from tests.strength.proxy_variants.patching import in_params

    drop("turn/start", "outputSchema")
    in_params("thread/start", lambda params, asked, _: params.update(outputSchema=asked.schema))


@variant
def tools_do_not_reach_the_model() -> None:
    drop("thread/start", "dynamicTools")


@variant
def tools_reach_the_model_without_schemas() -> None:
    from codex_replay.reference.proxy.asking.tools import Tools

    after(Tools, "dynamic", lambda found, _: [{**each, "inputSchema": {"type": "object"}} for each in found])


@variant
def tools_reach_the_model_without_descriptions() -> None:
    from codex_replay.reference.proxy.asking.tools import Tools

    after(Tools, "dynamic", lambda found, _: [{**each, "description": ""} for each in found])


@variant
def native_calls_answered_by_the_proxy() -> None:
    drop("thread/start", "experimentalRawEvents")
    old = AppServer._line

    def line(self: AppServer, data: bytes) -> None:
        inboxes = self._inboxes
        self._inboxes = {} if b'"item/tool/call"' in data else inboxes
        old(self, data)
        self._inboxes = inboxes

    AppServer._line = line


@variant
def native_calls_without_arguments() -> None:
    from codex_replay.reference.proxy.answering.events import Native

    in_events(lambda event: event._replace(arguments="{}") if isinstance(event, Native) else event)


@variant
def native_calls_twice() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        from codex_replay.reference.proxy.answering.events import Native

        async for event in old(self):
            yield event
            if isinstance(event, Native):
                yield event

    Exchange.events = events


# -- several at once, and the ends of things ---------------------------------------------------------------------------------


@variant
def deltas_of_any_thread() -> None:
    """What comes for one thread goes to all that are open."""
    old = AppServer._line

    def line(self: AppServer, data: bytes) -> None:
        old(self, data)
        if b'"item/agentMessage/delta"' in data:
            message = app_server.loads(data)
            for thread, inbox in self._inboxes.items():
                if thread != message["params"].get("threadId"):
                    inbox.put_nowait(app_server.Message(message["method"], message["params"]))

    AppServer._line = line


@variant
def a_dead_client_keeps_its_turn() -> None:
    async def interrupt(self: Exchange, server: AppServer) -> None:
        return None

    Exchange._interrupt = interrupt


@variant
def a_dead_server_is_not_replaced() -> None:
    Pool._sweep = lambda self: None


@variant
def approvals_not_answered() -> None:
    async def answer(self: AppServer, asked: Any) -> None:
        return None

    AppServer._answer = answer


@variant
def approval_policy_ignored_that_works() -> None:
    put("thread/start", approvalPolicy="never")


@variant
def fails_when_asked_for_approvals() -> None:
    def change(params: Any, _: Any, settings: Any) -> None:
        if settings.approval_policy == "untrusted":
            raise ProxyError(502, "no approvals here")

    in_params("thread/start", change)


@variant
def a_death_in_mid_turn_is_the_end() -> None:
    old = Exchange._next

    async def following(self: Exchange, *given: Any) -> Any:
        try:
            return await old(self, *given)
        except ProxyError as error:
            if error.code == "app_server_gone":
                return None
            raise

    Exchange._next = following


@variant
def a_death_in_mid_turn_hangs() -> None:
    old = Exchange._next

    async def following(self: Exchange, *given: Any) -> Any:
        try:
            return await old(self, *given)
        except ProxyError as error:
            if error.code == "app_server_gone":
                await asyncio.sleep(60)
            raise

    Exchange._next = following


@variant
def usage_of_the_first_report() -> None:
    old = Exchange.events

    async def events(self: Exchange) -> AsyncIterator[Any]:
        had = False
        async for event in old(self):
            if isinstance(event, Usage):
                event, had = (event if not had else None), True
            if event is not None:
                yield event

    Exchange.events = events
