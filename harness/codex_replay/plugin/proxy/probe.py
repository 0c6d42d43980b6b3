"""Try a proxy: start the proxy with the scripted fake as its codex, or use a running proxy.

The probe sends requests to the proxy, and notes its behaviour.

A running proxy may have a real model, which costs money. A running proxy therefore gets only requests that need no model:
its answer to the body `{}` shows whether a route exists.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.last_words import last_words
from codex_replay.core.text.truncate import shortened
from codex_replay.plugin.base.subjects import parse_app_server
from codex_replay.plugin.proxy.detect import PATHS, READY_PATHS, Answer, Observed
from codex_replay.plugin.proxy.dialects import DIALECTS
from codex_replay.plugin.proxy.http import Exchange, exchange
from codex_replay.plugin.proxy.no_end import came
from codex_replay.plugin.proxy.process import PROFILE, PROFILES, RunningProxy
from codex_replay.plugin.proxy.subject import CLIENTS, ProxySubject

if TYPE_CHECKING:
    from codex_replay.shell.http.backend_process import BackendProcess

TOOL = {
    "name": "getFileTree",
    "description": "List files",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}
_CALL = '<tool_call>{"name":"getFileTree","arguments":"{\\"path\\":\\"a\\"}"}</tool_call>'
#: What the model says to each probe; the marker is in the prompt.
SCRIPT: dict[str, Any] = {
    "turns": [
        {"match": "probe-text-tools;", "items": [_CALL], "times": "always"},
        *(
            {"match": f"probe-dialect-{name};", "items": [dialect.call("getFileTree", {"path": "a"})], "times": "always"}
            for name, dialect in DIALECTS.items()
        ),
        {"match": "probe-obsidian-xml;", "items": [_CALL], "times": "always"},
        {
            "match": "probe-native-tools;",
            "items": [{"type": "function_call", "name": "getFileTree", "arguments": {"path": "a"}, "call_id": "call_1"}],
        },
        # So long that requests which are sent at once are served at once.
        {"match": "probe-clients;", "items": ["Hello."], "first_delay_ms": 300, "times": "always"},
        {"items": ["Hello."], "times": "always"},
    ]
}
TITLE = "Generate a concise title for this conversation:\nUser: how do I bake bread without yeast?"
_PREFLIGHT = {
    "Origin": "https://editor.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "authorization,content-type",
}
SHOWN = 200
#: The seconds that a process needs at most to end after it has closed its connections.
ENDING = 0.5


def observe(
    subject: ProxySubject, folder: str, wait: float, report_on: Callable[[str], None], app_server: str = "fake"
) -> Observed:
    """Start a proxy with the fake `app_server` as its codex, or use a running proxy, and return its behaviour.

    `folder` is the working directory of the proxy. `wait` is the time limit for one answer, in seconds.

    `report_on` is a function that gets a description of each step of the probe. Raises `SubjectFailure` if the proxy does
    not become ready.
    """
    with tempfile.TemporaryDirectory(prefix="codex-replay-init-") as made:
        report_on("starting the proxy")
        probe = _Probe(subject, folder, Path(made), PROFILES[1], wait, app_server)
        try:
            if subject.url is not None:
                return _attached(probe)
            seen = replace(_observe(probe, report_on), ended=probe.ended)
        finally:
            probe.stop()
        if not any(seen.answers[name].served for name in ("chat", "responses")):
            return seen
        report_on("trying the other profile")
        other = _Probe(subject, folder, Path(made), PROFILES[0], wait, app_server)
        try:
            specified = {name: other.post(name, name) for name in _endpoints(seen.answers)}
            specified["text-tools"] = other.post(_endpoints(seen.answers)[0], "text-tools", _tools)
        finally:
            other.stop()
        return replace(seen, specified=specified, ended=probe.ended or other.ended)


def _observe(probe: _Probe, report_on: Callable[[str], None]) -> Observed:
    report_on("finding its routes")
    answers = {"models": probe.ask("GET", PATHS["models"]), "cors": probe.ask("OPTIONS", PATHS["responses"], None, _PREFLIGHT)}
    ready = {path: probe.ask("GET", path).status for path in READY_PATHS}
    stderr: list[str] = []
    for name in ("chat", "responses"):
        report_on(f"asking POST {PATHS[name]}")
        since = probe.stderr_bytes
        answers[name] = probe.post(name, name)
        stderr.append(probe.stderr(since))
    served = [name for name in ("responses", "chat") if answers[name].served]
    if not served:
        return Observed(False, ready, probe.seconds, answers=answers, stderr=stderr[0])
    first = served[0]
    keyless = probe.post(first, "without-key", key=False)
    seen = Observed(
        False, ready, probe.seconds, keyless.status, answers, keyless=f"POST {PATHS[first]}", no_answer=keyless.problem
    )
    report_on("trying streams and tools")
    answers["stream"] = probe.post(first, "stream", lambda endpoint: {"stream": True})
    answers["text-tools"] = probe.post(first, "text-tools", _tools)
    answers["native-tools"] = probe.post(first, "native-tools", _tools)
    for name in DIALECTS:
        answers[f"dialect-{name}"] = probe.post(first, f"dialect-{name}", _tools)
    if "responses" in served:
        answers["title-intercept"] = probe.ask("POST", PATHS["responses"], {"model": "gpt-5.2", "input": TITLE})
        mode = {"x-proxy-output-mode": "obsidian-xml"}
        answers["obsidian-xml"] = probe.post("responses", "obsidian-xml", _tools, mode)
    report_on("trying many clients at the same time")
    clients: dict[int, int] = {}
    number = CLIENTS
    while number and (not clients or clients[number * 2] < number * 2):
        clients[number] = probe.at_once(first, number)
        number //= 2
    return replace(seen, clients=clients)


def _attached(probe: _Probe) -> Observed:
    answers = {name: probe.ask("POST", PATHS[name], {}) for name in ("chat", "responses")}
    # It refuses `{}`, as it should: the route is there.
    answers = {name: replace(one, status=200) if one.status in (400, 422) else one for name, one in answers.items()}
    answers["models"] = probe.ask("GET", PATHS["models"])
    answers["cors"] = probe.ask("OPTIONS", PATHS["responses"], None, _PREFLIGHT)
    ready = {path: probe.ask("GET", path).status for path in READY_PATHS}
    first = next((name for name in ("responses", "chat") if answers[name].served), "responses")
    keyless = probe.ask("POST", PATHS[first], {}, key=False)
    request = f"POST {PATHS[first]} with the body {{}}"
    return Observed(True, ready, probe.seconds, keyless.status, answers, keyless=request, no_answer=keyless.problem)


def _endpoints(answers: Mapping[str, Answer]) -> list[str]:
    return [name for name in ("responses", "chat") if answers[name].served] or ["responses"]


def _tools(endpoint: str) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": TOOL} if endpoint == "chat" else {"type": "function", **TOOL}]}


def _no_backend() -> BackendProcess:
    raise AssertionError("the fake needs no backend")


class _Probe:
    """Send the requests of the probe to a running proxy.

    `seconds` is the time that the proxy needed from its start until it was ready. If its process ended during a request,
    `ended` is a sentence about this.
    """

    def __init__(self, subject: ProxySubject, cwd: str, folder: Path, profile: str, wait: float, app_server: str) -> None:
        self._wait = wait
        own = folder / profile
        own.mkdir()
        subject = replace(subject, ready_seconds=wait)
        begun = time.monotonic()
        codex = parse_app_server(app_server)
        self._running = RunningProxy(subject, codex, own, {PROFILE: profile}, SCRIPT, cwd, _no_backend)
        self.seconds = time.monotonic() - begun
        self._attached = subject.url is not None
        self.ended = ""

    def post(
        self,
        endpoint: str,
        name: str,
        more: Callable[[str], dict[str, Any]] = lambda endpoint: {},
        headers: Mapping[str, str] | None = None,
        *,
        key: bool = True,
    ) -> Answer:
        """Send the prompt of the probe `name` to an endpoint; if `key` is False, the request has no bearer token."""
        text = f"Hello probe-{name};"
        body = {"messages": [{"role": "user", "content": text}]} if endpoint == "chat" else {"input": text}
        return self.ask("POST", PATHS[endpoint], {"model": "gpt-5.2", **body, **more(endpoint)}, headers, key=key)

    def at_once(self, endpoint: str, number: int) -> int:
        """Send `number` requests in parallel, each from its own client; return the number of successful answers."""
        with ThreadPoolExecutor(number) as pool:
            return sum(answer.served for answer in pool.map(lambda _: self.post(endpoint, "clients"), range(number)))

    def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None, *, key: bool = True
    ) -> Answer:
        """Send a request; return the answer, and the messages that the proxy sent to the app-server in the meantime."""
        bearer = {"Authorization": f"Bearer {self._running.key}"} if key and method != "OPTIONS" else {}
        done = exchange(self._running.url, method, path, body, {**bearer, **(headers or {})}, self._wait)
        done.frames = [] if self._attached else self._running.wire.update()
        process = self._running.process
        if done.problem and not self.ended and process is not None and process.exited.wait(ENDING):
            words = last_words(process.stderr_tail(60))
            self.ended = f"The proxy ended (status {process.status}) when it got {method} {path}{words}"
        return answer_of(done)

    @property
    def stderr_bytes(self) -> int:
        """The number of bytes that the proxy has written to stderr."""
        return 0 if self._running.process is None else self._running.process.stderr_bytes

    def stderr(self, since: int) -> str:
        """Return the last lines that the proxy wrote to stderr after its first `since` bytes, on one line."""
        process = self._running.process
        return "" if process is None else " | ".join(line.strip() for line in process.stderr_tail(3, since))

    def stop(self) -> None:
        """End it."""
        self._running.stop()


def answer_of(done: Exchange) -> Answer:
    """Return the parts of an exchange that the detection needs."""
    try:
        value = json.loads(done.body)
    except (ValueError, RecursionError):
        value = None
    text, calls = _text_and_calls(value)
    sent = [call for call in done.calls() if call["method"] not in ("initialize", "initialized")]
    body = "" if 200 <= done.status < 300 else _error_text(done)
    return Answer(
        done.status,
        f"{done.problem}. {came(done).rstrip('.')}" if done.silent and done.status else done.problem,
        done.is_stream,
        text,
        calls,
        tuple(call["method"] for call in sent),
        body,
        done.header("access-control-allow-origin") is not None,
        any(isinstance(params := call.get("params"), dict) and params.get("dynamicTools") for call in sent),
    )


def _error_text(done: Exchange) -> str:
    """Return the body of an error, shortened for a sentence; for an HTML page, return "an HTML page"."""
    text = done.body.decode("utf-8", "replace").strip()
    return "an HTML page" if text[:14].lower().startswith(("<!doctype html", "<html")) else shortened(text, SHOWN)


def _text_and_calls(value: Any) -> tuple[str, tuple[str, ...]]:
    """Return the text and the names of the tool calls in an answer, from either endpoint; the answer must not be a stream."""
    texts: list[str] = []
    calls: list[str] = []
    try:
        for choice in value.get("choices") or []:
            message = choice["message"]
            texts.append(message.get("content") or "")
            calls += [call["function"]["name"] for call in message.get("tool_calls") or []]
        for item in value.get("output") or []:
            if item.get("type") == "function_call":
                calls.append(item["name"])
            texts += [part.get("text") or "" for part in item.get("content") or [] if isinstance(part, dict)]
        return "".join(texts), tuple(map(str, calls))
    except (AttributeError, KeyError, TypeError):
        return "", ()
