"""Random scenarios for a later version, over the core of a client's life; and how they are played on the real server.

As for 0.92 (`scenarios`), but each scenario has a server of its own, so that threads are listed alone. Left out is what the real
server decides by chance (calls of one reply at once, a message that steers while a reply streams), and what the scripted fake of
a later version does not have, which docs/fake-codex.md names.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess, BackendSession
from codex_replay.shell.rpc.client import Client
from tests.fakes.scripted.conversing import CLIENT
from tests.real.differential.scenarios import GREETING, conversation, each_turn, reasonings, searches, texts, usages, words
from tests.support.later_clients import AtOnce, Calls, Commands, Later

#: A call of a tool of the client's.
TOOL = {
    "type": "function",
    "name": "weather",
    "description": "Tells the weather.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
GO, NEXT = {"text": "Go."}, {"text": "Go on."}
FREE = {"approvalPolicy": "never", "sandbox": "danger-full-access"}
ASKING = {"approvalPolicy": "on-request"}
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "It must be."}


# -- scenarios --------------------------------------------------------------------------------------------------------------


def command(call: str, line: str, printed: str, code: int, **more: Any) -> dict[str, Any]:
    """Return a call of exec_command with its result."""
    made = {"type": "function_call", "name": "exec_command", "call_id": call, "arguments": {"cmd": line, **more}}
    return {**made, "result": {"stdout": printed, "exit_code": code}}


_printed = st.text(alphabet="ab é☂😀", min_size=1, max_size=20)
commands = st.one_of(
    st.builds(lambda text: (f"echo '{text}'", f"{text}\n", 0), _printed),
    st.builds(lambda text, code: (f"echo '{text}'; exit {code}", f"{text}\n", code), _printed, st.integers(1, 100)),
    st.sampled_from([("true", "", 0), ("false", "", 1)]),
)
turns = st.builds(
    lambda items, delta, usage: {"items": items, "delta": delta, "usage": usage},
    st.lists(st.one_of(texts, texts, reasonings, searches), min_size=1, max_size=3),
    st.integers(1, 20),
    usages,
)


def _ran(found: list[tuple[str, str, int]], more: dict[str, Any], settings: dict[str, Any], decision: Any) -> dict[str, Any]:
    script: list[Any] = [{"items": [command(f"call_{n}", *each, **more)]} for n, each in enumerate(found)]
    return conversation([*script, GREETING, GREETING], [{**GO, "decide": {"*": decision}}, NEXT], settings=settings)


_decisions = st.sampled_from(["accept", "acceptForSession", "decline", "cancel", "nonsense"])


def _patch(name: str, lines: list[str], settings: dict[str, Any], decision: str) -> dict[str, Any]:
    text = "".join(f"+{line}\n" for line in lines)
    call = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_1"}
    given = f"*** Begin Patch\n*** Add File: {name}\n{text}*** End Patch\n"
    script = [{"items": [{**call, "input": given}]}, GREETING, GREETING]
    return {**conversation(script, [{**GO, "decide": {"*": decision}}, NEXT], settings=settings), "model": "gpt-5.5"}


def _dynamic(city: str, answer: Any) -> dict[str, Any]:
    call = {"type": "function_call", "name": "weather", "arguments": {"city": city}, "call_id": "call_1"}
    told = conversation([{"items": [call]}, GREETING], [{**GO, "answer": {"*": answer}}], settings={"dynamicTools": [TOOL]})
    return {**told, "experimental": True}


def at_once(bad: list[bool], order: list[int]) -> dict[str, Any]:
    """Return a scenario in which the model calls a tool several times in one reply; `bad` calls have arguments that are no JSON.

    `order` has the numbers of the good ones in the order of the replies. One may be missing: it is open when the turn is
    interrupted. Of several, the real server ends the items in an order that differs from run to run.
    """
    calls = [
        {"type": "function_call", "name": "weather", "arguments": "{" if each else json.dumps({"n": n}), "call_id": f"call_{n}"}
        for n, each in enumerate(bad)
    ]
    good = [f"call_{n}" for n, each in enumerate(bad) if not each]
    told = {"calls": good, "order": [number for number in order if number < len(good)]}
    conversed = {"api": "v2", "steps": [], "settings": {"dynamicTools": [TOOL]}, "at_once": told}
    return {"script": [{"items": calls}, {**GREETING, "times": "always"}], "conversation": conversed, "experimental": True}


_content = st.one_of(
    st.builds(lambda text: {"type": "inputText", "text": text}, words),
    st.just({"type": "inputImage", "imageUrl": "data:image/png;base64,AAAA"}),
)
_answers = st.one_of(
    st.builds(
        lambda items, success: {"contentItems": items, "success": success},
        st.lists(_content, min_size=1, max_size=3),
        st.booleans(),
    ),
    st.sampled_from([{}, {"output": "x", "success": True}, {"contentItems": "x", "success": True}, {"contentItems": []}, None]),
)
_faults = st.one_of(
    st.builds(
        lambda status, text: {"status": status, "error": {"message": text}},
        st.sampled_from([400, 401, 403, 404, 429, 500, 502, 503]),
        st.text("abc é", min_size=1, max_size=10),
    ),
    st.builds(
        lambda code, text: {"items": [{"type": "failed", "code": code, "message": text}]},
        st.sampled_from(["insufficient_quota", "rate_limit_exceeded", "invalid_prompt", "server_error"]),
        st.text("abc é", min_size=1, max_size=10),
    ),
    st.builds(
        lambda items, reason: {"items": [*items, {"type": "incomplete", "reason": reason}]},
        st.lists(texts, max_size=1),
        st.sampled_from(["max_output_tokens", "content_filter"]),
    ),
    st.builds(lambda items: {"items": items, "fault": "cut_before_completed"}, st.lists(texts, max_size=2)),
)
_listing = st.sampled_from(
    [
        {"call": "thread/list"},
        {"call": "thread/read"},
        {"call": "thread/read", "params": {"includeTurns": True}},
        {"call": "thread/loaded/list"},
        {"call": "thread/name/set", "params": {"name": "Mine"}, "then": "thread/name/updated"},
        {"call": "turn/interrupt", "params": {"turnId": "x"}},
        {"call": "turn/steer", "params": {"expectedTurnId": "x", "input": [{"type": "text", "text": "a"}]}},
        {"call": "newConversation"},
        {"call": "turn/start", "params": {"input": 5}},
        {"call": "thread/start", "params": {"approvalPolicy": "on-failure"}},
        {"call": "thread/start", "params": {"sandbox": 5}},
        {"call": "model/list"},
        {"call": "account/read"},
        {"load": "thread/fork", "params": {"excludeTurns": True}},
        {"load": "thread/fork"},
        GO,
        GO,
    ]
)


def _life(steps: list[dict[str, Any]], turn: dict[str, Any], archived: bool) -> dict[str, Any]:
    ends: list[Any] = [
        {"call": "thread/archive", "then": "thread/archived"},
        {"call": "thread/list", "params": {"archived": True}},
        {"call": "thread/unarchive", "then": "thread/unarchived"},
    ]
    return conversation([{**turn, "times": "always"}], [GO, *steps, *(ends if archived else [])])


def _from_elsewhere(said: list[str]) -> dict[str, Any]:
    """Return a scenario that resumes a thread with a history of the client: refused while it is loaded, then a new thread."""
    history = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]} for text in said]
    load = {"load": "thread/resume", "params": {"history": history}}
    steps: list[Any] = [
        GO,
        load,
        {"call": "thread/archive", "then": "thread/archived"},
        {"call": "thread/unarchive", "then": "thread/unarchived"},
        {"load": "thread/resume", "params": {"history": []}},
        load,
        {"call": "thread/read", "params": {"includeTurns": True}, "thread": 1},
        {**NEXT, "thread": 1},
        {"call": "thread/list"},
    ]
    return {**conversation([{**GREETING, "times": "always"}], steps), "experimental": True}


def _interrupted(text: str, after: str) -> dict[str, Any]:
    script = [{"items": [text, {"type": "wait", "ms": 8000}, "never"]}, GREETING]
    return conversation(script, [{**GO, "interrupt": after}, NEXT])


_settings = st.fixed_dictionaries(
    {},
    optional={
        "model": st.sampled_from(["gpt-5.5", "unknown"]),
        "effort": st.sampled_from(["low", "high"]),
        "approvalPolicy": st.sampled_from(["never", "on-request", "untrusted"]),
        "cwd": st.just("/tmp"),
        "outputSchema": st.just({"type": "object", "properties": {}}),
    },
)
KINDS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "tools at once": st.builds(
        lambda bad, order, all_: at_once(bad, [n for n in order if n < bad.count(False)][: None if all_ else -1]),
        st.lists(st.sampled_from([False, False, False, True]), min_size=1, max_size=4),
        st.permutations(range(4)),
        st.booleans(),
    ),
    "text": st.builds(each_turn, st.lists(turns, min_size=1, max_size=3)),
    "command": st.builds(
        _ran,
        st.lists(commands, min_size=1, max_size=2),
        st.just({}),
        st.sampled_from([FREE, {**FREE, **ASKING}]),
        st.just("accept"),
    ),
    "approval": st.builds(
        _ran,
        st.lists(st.sampled_from([("echo hi", "hi\n", 0), ("echo b; exit 3", "b\n", 3)]), min_size=1, max_size=2),
        st.just(ESCALATED),
        st.sampled_from([ASKING, ASKING, {"approvalPolicy": "never"}, {"approvalPolicy": "untrusted"}]),
        _decisions,
    ),
    "patch": st.builds(
        _patch,
        st.sampled_from(["new.txt", "a/b.txt"]),
        st.lists(st.text("ab é", max_size=8), min_size=1, max_size=3),
        st.sampled_from([FREE, ASKING, {"approvalPolicy": "never"}]),
        _decisions,
    ),
    "dynamic tool": st.builds(_dynamic, words, _answers),
    "fault": st.builds(lambda fault, turn: conversation([fault, turn], [GO, NEXT]), _faults, turns),
    "full context": st.builds(
        lambda text: conversation([{"items": [{"type": "failed", "code": "context_length_exceeded", "message": text}]}], [GO]),
        words,
    ),
    "retry": st.builds(
        lambda turn: {**conversation([{"items": ["a"], "fault": "cut_before_completed"}, turn], [GO]), "retries": 1}, turns
    ),
    "thread": st.builds(_life, st.lists(_listing, max_size=4), turns, st.booleans()),
    "interrupt": st.builds(_interrupted, st.text("ab é", min_size=1, max_size=9), st.just("item/agentMessage/delta")),
    "settings": st.builds(
        lambda first, second: conversation([GREETING, GREETING], [{**GO, "params": first}, {**NEXT, "params": second}]),
        _settings,
        _settings,
    ),
    "history": st.builds(_from_elsewhere, st.lists(words, min_size=1, max_size=3)),
    "raw items": st.builds(
        lambda told: {**told, "experimental": True, "conversation": {**told["conversation"], "raw": True}},
        st.one_of(
            st.builds(each_turn, st.lists(turns, min_size=1, max_size=2)),
            st.builds(_ran, st.lists(commands, min_size=1, max_size=2), st.just({}), st.just(FREE), st.just("accept")),
            st.builds(_dynamic, words, _answers),
            st.builds(
                _patch, st.just("new.txt"), st.lists(st.text("ab é", max_size=8), max_size=3), st.just(FREE), st.just("accept")
            ),
        ),
    ),
    "image": st.builds(
        lambda url, text: conversation([GREETING], [{"input": [{"type": "text", "text": text}, {"type": "image", "url": url}]}]),
        st.just("data:image/png;base64,AAAA"),
        words,
    ),
}


# -- both servers -----------------------------------------------------------------------------------------------------------


def _home(root: Path, url: str, version: str, scenario: dict[str, Any]) -> HermeticHome:
    more = {**scenario.get("config", {}), "model_providers": {"mock": {"stream_max_retries": scenario.get("retries", 0)}}}
    model, login = scenario.get("model", "gpt-5.2-codex"), scenario.get("login", False)
    return HermeticHome(root, url, version=version, model=model, requires_openai_auth=login, extra_config=more)


def _play(argv: list[str], home: HermeticHome, env: dict[str, str], scenario: dict[str, Any], gates: Any = None) -> list[Frame]:
    client = Client(argv, env=env, cwd=str(home.work), timeout=30.0)
    try:
        able = {"experimentalApi": True} if scenario.get("experimental") else {}
        able |= {"optOutNotificationMethods": scenario["unwanted"]} if "unwanted" in scenario else {}
        client.request("initialize", {"clientInfo": CLIENT, **({"capabilities": able} if able else {})})
        client.notify("initialized")
        told = scenario["conversation"]
        kinds: dict[str, type[Later]] = {"at_once": AtOnce, "calls": Calls, "commands": Commands}
        kind = next((kind for name, kind in kinds.items() if name in told), Later)
        kind(client, scenario["conversation"], str(home.work), gates).play()
        client.close()
        place = str(home.home.parent).encode()
        return [
            Frame(frame.n, frame.t, frame.seam, frame.sender, frame.kind, frame.raw.replace(place, b"/root"))
            for frame in client.timeline
        ]
    finally:
        client.stop()


class Both:
    """The real server of a version and the scripted fake of it, for one scenario after the other."""

    def __init__(self, root: Path, version: str, backend: BackendProcess, fake: str) -> None:
        self._root, self._version, self._backend, self._fake = root, version, backend, fake
        self._numbers = itertools.count()

    @contextmanager
    def _session(self, scenario: dict[str, Any]) -> Iterator[BackendSession]:
        session = self._backend.session("later", scenario["script"])
        try:
            yield session
        finally:
            session.close()

    def play(self, scenario: dict[str, Any]) -> tuple[list[Frame], list[Frame]]:
        """Return what the real server and the fake said."""
        root = self._root / str(next(self._numbers))
        with self._session(scenario) as session:
            return self._record(root, session, scenario), self.imitate(root / "fake", session.url, scenario)

    def record(self, scenario: dict[str, Any]) -> tuple[list[Frame], str]:
        """Return what the real server said, and the URL of its provider."""
        root = self._root / str(next(self._numbers))
        with self._session(scenario) as session:
            return self._record(root, session, scenario), session.url

    def _record(self, root: Path, session: BackendSession, scenario: dict[str, Any]) -> list[Frame]:
        home = _home(root / "real", session.url, self._version, scenario)
        return _play([str(find_installed(self._version)), "app-server"], home, home.env, scenario, session)

    def imitate(self, root: Path, url: str, scenario: dict[str, Any]) -> list[Frame]:
        """Return what the fake says; `url` is that of its provider, which some errors name."""
        home = _home(root, url, self._version, scenario)
        script = root / "script.json"
        script.write_bytes(dumps(scenario["script"]))
        env = {**home.env, "FAKE_CODEX_SCRIPT": str(script), "FAKE_CODEX_VERSION": self._version}
        return _play([self._fake, "app-server"], home, env, scenario)
