"""One request of a client is one turn, whole and unchanged. Source: docs/contract/real-0.92.md, sections 2 and 4."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from codex_replay.plugin.proxy.fixture import Exchange, Proxy
from suites.proxy.answers import must_say, read
from suites.proxy.expected import ENDPOINTS, WORKS, asking
from suites.proxy.failures import THINKS, WATCHED, failure, must_be_at_once, must_come_of_the_fault
from suites.proxy.saying import short

pytestmark = pytest.mark.proxy_profile(WORKS)

STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
BOTH = pytest.mark.parametrize("endpoint", ENDPOINTS)
#: The calls that give the app-server a text to answer.
SUBMISSIONS = ("sendUserTurn", "sendUserMessage", "turn/start", "turn/steer")
#: Each piece begins with the one before, or is equal to it; a model that counts or repeats itself says such things.
PIECES = ["ha", "ha", "ha!", "ha! ", "1", "10", "100", " ", " 100", " 100", "\n", "\n\n", "end"]
#: Seconds within which a proxy must serve again after its app-server has died; it may wait between two starts.
BACK_OFF = 8.0
#: Starts of an app-server that ends at once, a second; one more for each request is fair, too.
STARTS = 5


@BOTH
@STREAM
@pytest.mark.model("Once.")
@pytest.mark.spec("one-submission", "REAL-80")
def test_one_request_is_one_submission(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The prompt is submitted once: by a turn or by a message. The server joins two at random, or answers both."""
    done = proxy.post(endpoint, {"stream": stream})
    sent = [call["method"] for call in done.calls(*SUBMISSIONS)]
    if proxy.attached or len(sent) == 1:
        return
    raise AssertionError(
        f"The proxy submitted the prompt of one request {len(sent)} times ({', '.join(sent) or 'no call'}), and the model got "
        f"{len(proxy.model_calls())} requests: each submission that the app-server does not join with another is a model call. "
        "Submit the prompt once."
    )


@BOTH
@STREAM
@pytest.mark.model({"type": "text", "text": "".join(PIECES), "deltas": PIECES})
@pytest.mark.spec("repeated-deltas", "EDIT-15")
def test_deltas_that_repeat_what_was_said(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """A delta that begins with the one before, or is equal to it, is new text all the same."""
    got, wanted = read(proxy.post(endpoint, {"stream": stream})).text, "".join(PIECES)
    if got != wanted:
        raise AssertionError(
            f"Text is lost, or comes twice, where a delta begins with what the delta before it said: the model said "
            f"{short(PIECES)}, but the answer is {short(got)}. Append each delta as it is."
        )


@BOTH
@STREAM
@pytest.mark.model(turns=[{"status": 401, "error": {"message": "no access"}, **THINKS, "times": "always"}])
@pytest.mark.spec("fault-401", "REAL-98")
def test_a_backend_that_refuses_the_login(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The login of the proxy's own Codex is not accepted: 401 or a server error, at once and with a message."""
    done = proxy.post(endpoint, {"stream": stream}, ok=False)
    must_come_of_the_fault(proxy, done)
    error = failure(done)
    assert isinstance(error, dict), f"the error of the answer must be an object, not {error!r}"
    assert error.get("message"), f"the error of the answer must have a message: {error!r}"
    if not done.is_stream and done.status != 401 and done.status < 500:
        raise AssertionError(
            f"{done.method} {done.path} must be answered 401 or 5xx if the backend refuses the login (401), but was answered "
            f"{done.answered}: {done.body[:300]!r}"
        )


def served_again(proxy: Proxy, endpoint: str, script: list[Any]) -> Exchange:
    """Ask until the proxy serves, as long as it may wait between two starts of its app-server."""
    body = asking(endpoint, "Again?")
    deadline = time.monotonic() + BACK_OFF
    while True:
        done = proxy.post(endpoint, body, script=script, ok=False)
        if done.status == 200:
            return done
        if time.monotonic() > deadline:
            raise AssertionError(
                f"The proxy must serve again within {BACK_OFF:g} s after its app-server has died, but {done.method} {done.path} "
                f"was answered {done.answered}: {done.body[:300]!r}"
            )
        time.sleep(0.3)


@BOTH
@STREAM
@pytest.mark.model("")
@pytest.mark.spec("server-death-before", "REAL-94")
def test_an_app_server_that_dies_before_the_first_word(proxy: Proxy, endpoint: str, stream: bool) -> None:
    """The request fails at once with a server error, for nothing was said; and the proxy serves again."""
    script = [
        {"match": proxy.marker, "items": [{"type": "wait", "ms": 30_000}, "never"], "times": "always"},
        {"items": ["Again."], "times": "always"},
    ]
    running = proxy.process(script=script)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(proxy.post, endpoint, {"stream": stream}, script=script, ok=False)
        deadline = time.monotonic() + 10
        while not (begun := [frame for frame in list(running.wire.frames) if '"turn/started"' in frame.raw]):
            if asked.done() or time.monotonic() > deadline:
                early = asked.result()  # raises what the request has raised
                raise AssertionError(
                    f"The proxy answered {early.answered} before its app-server had begun the turn: {early.body[:300]!r}"
                )
            running.wire.update()
            time.sleep(0.02)
        time.sleep(WATCHED)
        killed = time.time()
        os.kill(int(begun[-1].child), signal.SIGTERM)
        done = asked.result()
    must_be_at_once(done, killed, "the end of its app-server")
    assert failure(done), f"the failure that the answer tells of is empty: {done.body[-300:]!r}"
    must_say(served_again(proxy, endpoint, script), "Again.")


@BOTH
@pytest.mark.model("")
@pytest.mark.spec("server-death-at-start", "REAL-94")
def test_an_app_server_that_dies_at_its_start(proxy: Proxy, endpoint: str) -> None:
    """A request fails at once with a server error, the proxy does not start app-servers in a tight loop, and it serves again."""
    script = [{"items": ["Again."], "times": "always"}]
    proxy.post(endpoint, script=script)
    running = proxy.process(script=script)
    began, before = time.monotonic(), len(proxy.exchanges)
    with running.codex_ends_at_its_start() as starts:
        for _ in range(2):  # a spare app-server, which the proxy has just started, shows itself a little later
            time.sleep(0.3)
            running.wire.update()
            for child in {int(frame.child) for frame in running.wire.frames}:
                with contextlib.suppress(ProcessLookupError):  # a proxy may end its app-server after each request
                    os.kill(child, signal.SIGTERM)
        time.sleep(0.2)
        if not running.alive:
            return  # it ends with its app-server, and leaves the next start to its process manager
        done = proxy.post(endpoint, asking(endpoint, "And now?"), script=script, ok=False)
        must_be_at_once(done, done.started, "the request, because the app-server ends at its start")
        assert failure(done), f"the error in the answer is empty: {done.body[-300:]!r}"
        assert done.status >= 500, (
            f"{done.method} {done.path} must be answered a server's error (502 or 503) while the app-server ends at its start, "
            f"but was answered {done.answered}: {done.body[:300]!r}"
        )
        time.sleep(1)
        seconds, requests, number = time.monotonic() - began, len(proxy.exchanges) - before, starts()
    if number > STARTS * seconds + requests:
        raise AssertionError(
            f"The proxy started its app-server {number} times in {seconds:.1f} s, for {requests} requests, although each ended "
            f"at its start: wait between two starts, so that there are at most {STARTS} a second."
        )
    must_say(served_again(proxy, endpoint, script), "Again.")
