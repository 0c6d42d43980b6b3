"""Handle one client request: a conversation with the app-server, from its opening to the end of the turn.

The proxy opens a conversation, sends the prompt, and reads all messages until the turn ends. The proxy ends every turn that it
has started.

In the profile `as-specified`, the proxy sends newConversation and addConversationListener, and then sendUserTurn and
sendUserMessage together. sendUserTurn and sendUserMessage contain the same items, so the server may make one or two calls
of the model. The proxy passes on the text of all calls of the model.

In the profile `works-on-0.92`, the proxy sends thread/start and turn/start. If the model calls the client's tools, the proxy ends
the turn: the client runs the tools and sends a new request. The proxy reads the calls from raw items, because the server asks for
the outputs of the calls one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from codex_replay.reference.proxy.answering.events import Began, Ended, Event, Failed, Item, Native, Replies, Usage, read_event
from codex_replay.reference.proxy.asking import payloads
from codex_replay.reference.proxy.asking.normalise import Asked
from codex_replay.reference.proxy.errors import ProxyError, app_server_ended, too_slow
from codex_replay.reference.proxy.settings import Settings
from codex_replay.reference.proxy.wire.app_server import AppServer, Inbox, Message, no_tool
from codex_replay.reference.proxy.wire.json_text import loads
from codex_replay.reference.proxy.wire.pool import Pool

#: Seconds: for another call once the reply's usage is known; for another call when usage never comes; for a turn of the message's
#: own when the turn before it has ended early; for an interrupted turn to end; for the end of a turn whose last reply is through.
STRAGGLER, QUIET, SECOND_TURN, INTERRUPTED, LOST_END = 0.1, 1.0, 2.0, 3.0, 2.0
SUBMITTED = "(the message was accepted)"
NOT_RUN = "The client runs this tool itself."


class Exchange:
    """The conversation with the app-server for one client request.

    `events` yields the events until the turn ends. A caller must always call `aclose` of the generator.
    """

    def __init__(self, asked: Asked, settings: Settings, pool: Pool) -> None:
        self._asked, self._settings, self._pool = asked, settings, pool
        self._v2 = not settings.as_specified
        self._server: AppServer | None = None
        self._inbox: Inbox | None = None
        self._thread = ""
        self._turn = "0"
        self._submitted = self._over = False
        self._open: list[Any] = []  # requests of the server for a tool's output

    @property
    def markup(self) -> Mapping[str, str] | None:
        """The markup of calls in the model's text; None means the markup of the specification."""
        return self._settings.tool_calls

    async def events(self) -> AsyncIterator[Event]:
        """Yield deltas, messages, native calls and usage, in order. Raises `ProxyError` if the turn or the server fails."""
        self._server = await self._pool.acquire()
        await (self._begin_v2() if self._v2 else self._begin_v1())
        calls: dict[str, Native] = {}
        spent = early = False
        twice = not self._v2 and not self._skips_turn()
        accepted = not twice
        failed: ProxyError | None = None  # v1 reports the end of a failed turn separately
        replies = Replies()
        while True:
            wait = self._settings.idle
            if calls:
                wait = STRAGGLER if spent else QUIET
            elif failed or (early and accepted):
                wait = SECOND_TURN
            elif replies.through:
                wait = LOST_END
            message = await self._next(wait, calls or failed or (early and accepted) or replies.through)
            if message is None:
                self._over = not calls
                break
            if message.method == SUBMITTED:
                accepted = True
                continue
            event = read_event(message, self._v2)
            replies.saw(event)
            if isinstance(event, Failed):
                failed = event.error
                if self._v2:
                    break
            if isinstance(event, Native):
                if self._take(event, calls):
                    spent = False
            elif isinstance(event, Began):
                early = False
            elif isinstance(event, Ended):
                if event.aborted:
                    failed = ProxyError(502, "The turn was interrupted.", code="interrupted")
                if accepted or failed:
                    self._over = True
                    break
                early = True
            elif event is not None and not isinstance(event, Item):
                spent = spent or isinstance(event, Usage)
                yield event
        if failed is not None:
            self._over = True
            raise failed
        for call in calls.values():
            yield call

    def _take(self, event: Native, calls: dict[str, Native]) -> bool:
        """Record that the model has called a client tool.

        Return True if the tool call is new. Ignore a tool call with invalid arguments, because Codex itself reports the
        error to the model.
        """
        if event.request is not None:
            self._open.append(event.request)
        if event.name not in self._asked.tools.names or event.call_id in calls:
            return False
        try:
            loads(event.arguments)
        except (ValueError, RecursionError):
            return False
        calls[event.call_id] = event
        return True

    async def _next(self, seconds: float, silence_is_the_end: object) -> Message | None:
        """Return the next message.

        If the server sends nothing for `seconds`, return None if `silence_is_the_end`, otherwise raise `ProxyError`.
        """
        assert self._inbox is not None
        assert self._server is not None
        try:
            async with asyncio.timeout(seconds):
                message = await self._inbox.get()
        except TimeoutError:
            if silence_is_the_end:
                return None
            self._server.retired = True
            raise too_slow(f"The app-server has not sent a message for {seconds:g} s.") from None
        if message is None:
            raise app_server_ended("The app-server ended before the turn did.")
        return message

    # -- the calls -------------------------------------------------------------------------------------------------------

    def _skips_turn(self) -> bool:
        return self._asked.endpoint == "responses" and self._settings.skip_turn

    def _opened(self, thread: Any) -> None:
        """Open the inbox for the messages of a thread.

        `_opened` must be called before the next line of the server is read, so that no notification is lost.
        """
        assert self._server is not None
        self._thread = str(thread)
        self._inbox = self._server.open_inbox(self._thread)

    async def _begin_v1(self) -> None:
        server, asked, settings = self._server, self._asked, self._settings
        assert server is not None
        opened = payloads.new_conversation(asked, settings)
        await server.request("newConversation", opened, lambda result: self._opened(_at(result, "conversationId")))
        self._checked()
        # 0.92 sends nothing about a conversation without a listener; a server without listeners may refuse
        with contextlib.suppress(ProxyError):
            await server.request("addConversationListener", {"conversationId": self._thread})
        self._submitted = True
        waiting = []
        if not self._skips_turn():
            turn = payloads.send_user_turn(self._thread, asked, settings)
            waiting.append(("sendUserTurn", await server.ask("sendUserTurn", turn)))
        message = payloads.send_user_message(self._thread, asked, settings)
        waiting.append(("sendUserMessage", await server.ask("sendUserMessage", message, self._accepted)))
        answers = await asyncio.gather(*(server.answer_of(*one) for one in waiting), return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, BaseException)]
        self._over = len(refused) == len(answers) and all(getattr(error, "code", "") == "app_server_refused" for error in refused)
        if refused:
            raise refused[0]

    def _accepted(self, _: Any) -> None:
        assert self._inbox is not None
        self._inbox.put_nowait(Message(SUBMITTED, {}))

    async def _begin_v2(self) -> None:
        server = self._server
        assert server is not None
        opened = payloads.thread_start(self._asked, self._settings)
        await server.request("thread/start", opened, lambda result: self._opened(_at(result, "thread", "id")))
        self._checked()
        self._submitted = True
        try:
            result = await server.request("turn/start", payloads.turn_start(self._thread, self._asked))
        except ProxyError as error:
            self._over = error.code == "app_server_refused"  # there is no turn to end
            raise
        self._turn = str(_at(result, "turn", "id") or "0")

    def _checked(self) -> None:
        if not self._thread or self._thread == "None":
            raise ProxyError(502, "The app-server opened a conversation without an id.", code="app_server_refused")

    # -- the end ---------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the conversation for one client request. Interrupt a running turn, and answer the open requests of the server."""
        if self._server is not None:
            self._pool.in_background(self._leave(self._server))

    async def _leave(self, server: AppServer) -> None:
        try:
            if self._submitted and not self._over and not server.dead:
                await self._interrupt(server)
            for request in self._open:
                await server.reply(request, no_tool(NOT_RUN, self._settings.experimental))
        except ProxyError:
            pass  # it has ended; the next request gets another
        finally:
            server.close_inbox(self._thread)
            self._pool.release(server)

    async def _interrupt(self, server: AppServer) -> None:
        method, key = ("turn/interrupt", "threadId") if self._v2 else ("interruptConversation", "conversationId")
        params = {key: self._thread} | ({"turnId": self._turn} if self._v2 else {})
        asked = await server.ask(method, params)
        try:
            async with asyncio.timeout(INTERRUPTED):
                while (message := await self._inbox.get() if self._inbox else None) is not None:
                    event = read_event(message, self._v2)
                    if isinstance(event, Native) and event.request is not None:
                        self._open.append(event.request)
                    if isinstance(event, Ended) or (self._v2 and isinstance(event, Failed)):
                        return
        except TimeoutError:
            server.retired = True  # it may hang, and the next request shall not
        finally:
            asked.cancel()  # an idle thread never answers


def _at(value: Any, *path: str) -> Any:
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value
