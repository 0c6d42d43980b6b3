"""Detect the properties of a proxy from its behaviour: profile, capabilities, readiness, and number of parallel clients.

All functions are pure; their input is an `Observed`, which `probe.py` makes. A capability counts as absent only if no
answer of the proxy shows it. If a capability of the proxy works with errors, the capability counts as present, and the suite
reports the errors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from codex_replay.plugin.proxy.dialects import DIALECTS
from codex_replay.plugin.proxy.fields import SPECIFIED
from codex_replay.plugin.proxy.subject import CAPABILITIES, CLIENTS, READY_PATH, READY_SECONDS
from codex_replay.protocol.versions import DEFAULT, STEPS

#: The paths that may tell when a proxy is ready, the best first; the last is asked if nothing else is known.
READY_PATHS = ("/readyz", "/healthz", READY_PATH)
#: The statuses of a route that does not exist.
NO_ROUTE = (404, 405, 501)
#: The calls of a proxy that opens threads and starts turns.
V2_CALLS = ("thread/start", "turn/start")
#: The calls that begin a conversation or a turn.
_OPENING = (*SPECIFIED, *V2_CALLS)
#: A proxy that took longer than this share of the usual time gets more.
SLOW = 1 / 4


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a proxy; status 0 means that no answer came, and `problem` is the reason.

    `methods` are the methods of the messages that the proxy sent to the app-server.
    """

    status: int = 0
    problem: str = ""
    stream: bool = False
    text: str = ""
    calls: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    body: str = ""
    allowed: bool = False  # the answer has Access-Control-Allow-Origin
    native: bool = False  # the app-server was given dynamic tools

    @property
    def served(self) -> bool:
        """True if the answer has a success status."""
        return 200 <= self.status < 300 and not self.problem


@dataclass(frozen=True, slots=True)
class Observed:
    """The behaviour of a proxy that the probe observed.

    `ready` has the status that the proxy answered on each path in `READY_PATHS` (0: no answer). `seconds` is the time until
    the first answer of the proxy. `without_key` is the status of the answer to a request without a bearer token. `answers`
    has the answers of the proxy in the profile works-on-0.92, by the name of the probe. `specified` has the answers of the
    proxy in the profile as-specified, by the name of the probe. `clients` maps a number of parallel clients to the number
    of them that the proxy served. If the proxy served no client, `stderr` is the end of its stderr during the first
    request. If the process of the proxy ended during the probe, `ended` is a sentence with the request and its stderr.
    """

    attached: bool = False
    ready: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    without_key: int = 0
    answers: Mapping[str, Answer] = field(default_factory=dict)
    specified: Mapping[str, Answer] = field(default_factory=dict)
    clients: Mapping[int, int] = field(default_factory=dict)
    stderr: str = ""
    ended: str = ""
    keyless: str = ""  # the request without a bearer token, such as "POST /v1/responses"
    no_answer: str = ""  # why this request got no answer


@dataclass(frozen=True, slots=True)
class FoundProxy:
    """The detected properties of a proxy.

    `profile` is None if no profile was detected; `lacks` has the reason for each absent capability.

    `dialects` are the forms of markup (such as XML tags) in which the proxy recognises tool calls in a text.
    """

    profile: str | None
    calls: tuple[str, ...]
    capabilities: tuple[str, ...]
    lacks: Mapping[str, str]
    ready: str
    ready_seconds: float
    needs_key: bool
    clients: int | None
    wrong: str = ""
    dialects: tuple[str, ...] = ()


def detect(seen: Observed) -> FoundProxy:
    """Return the properties of the proxy that `seen` describes.

    If the proxy failed too early, `wrong` is a sentence with the reason.
    """
    dialects = _dialects(seen)
    lacks = _lacks(seen, dialects)
    profile, calls = _profile(seen)
    return FoundProxy(
        profile,
        calls,
        tuple(name for name in CAPABILITIES if name not in lacks),
        lacks,
        next((path for path in READY_PATHS if 200 <= seen.ready.get(path, 0) < 300), READY_PATH),
        READY_SECONDS if seen.seconds <= READY_SECONDS * SLOW else float(round(seen.seconds / SLOW)),
        seen.without_key in (401, 403),
        max((number for number, served in seen.clients.items() if served >= number), default=None),
        _wrong(seen, lacks, calls),
        dialects,
    )


def _dialects(seen: Observed) -> tuple[str, ...]:
    """Return the dialects in which the proxy recognises tool calls.

    The probe `text-tools` writes a call in the first dialect, in both profiles.
    """
    first = next(iter(DIALECTS))
    tried = {name: [seen.answers.get(f"dialect-{name}")] for name in DIALECTS}
    tried[first] += [answers.get("text-tools") for answers in (seen.answers, seen.specified)]
    return tuple(name for name, answers in tried.items() if any(answer is not None and answer.calls for answer in answers))


def _wrong(seen: Observed, lacks: Mapping[str, str], calls: Sequence[str]) -> str:
    if seen.ended:
        return seen.ended
    posts = {name: answer for name in ("chat", "responses") if (answer := seen.answers.get(name)) is not None}
    if posts and "chat" in lacks and "responses" in lacks:
        report = ", ".join(f"POST {PATHS[name]} is answered {_shown(answer)}" for name, answer in posts.items())
        return f"The proxy has none of the routes that a client uses: {report}."
    if any(answer.status in (401, 403) for answer in posts.values()):
        return (
            "The proxy refuses the key of the suite (401). Make the proxy accept the bearer token in PROXY_API_KEY, or write "
            "the key that the proxy accepts into the configuration as `key`."
        )
    if posts and not any(answer.served for answer in posts.values()):
        name, answer = next(iter(posts.items()))
        report = f"failed, {answer.problem}" if answer.problem else f"is answered {_shown(answer)}"
        start = "" if calls or seen.attached else f" {_START}"
        if answer.methods:
            start = f" The proxy has sent its app-server: {', '.join(answer.methods)}."
        return f"The proxy serves no request: POST {PATHS[name]} {report}.{start}" + (
            seen.stderr and f" Its stderr ends: {seen.stderr}"
        )
    if posts and not seen.attached and not calls:
        return f"The proxy sends nothing to its app-server. {_START}"
    return ""


_START = (
    f"A proxy must start the codex that CODEX_BIN names, as `$CODEX_BIN app-server`. init tries Codex {DEFAULT}, then "
    f'{STEPS[-1]}; --app-server names the only one to try (docs/proxy.md, "A later Codex").'
)


#: The route of each endpoint.
PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "models": "/v1/models"}


def _shown(answer: Answer) -> str:
    return answer.problem or f"{answer.status}{f': {answer.body}' if answer.body else ''}"


def _profile(seen: Observed) -> tuple[str | None, tuple[str, ...]]:
    """Return the profile ("default" for a proxy that supports both profiles), and the methods that show the profile."""
    works, specified = _methods(seen.answers), _methods(seen.specified)
    if not works and not specified:
        return ("works-on-0.92" if seen.attached else None), ()
    if all(method in works for method in SPECIFIED):
        return "as-specified", works
    if all(method in specified for method in SPECIFIED):
        return "default", tuple(dict.fromkeys((*specified, *works)))
    threads = set(V2_CALLS) <= set(works or specified)
    return "speaks-v2" if threads else "works-on-0.92", works or specified


def _methods(answers: Mapping[str, Answer]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(method for answer in answers.values() for method in answer.methods))


def _lacks(seen: Observed, dialects: Sequence[str]) -> dict[str, str]:
    """Return the capabilities that the proxy seems to lack, each with the reason."""
    lacks = {name: f"{_route(name)} is answered {_shown(answer)}" for name, answer in _asked(seen) if answer.status in NO_ROUTE}
    if any(answer.served for name, answer in _asked(seen) if name != "models"):  # else the proxy as a whole is broken
        lacks |= {name: f"{_route(name)} gets no answer ({answer.problem})" for name, answer in _asked(seen) if not answer.status}
    if (stream := seen.answers.get("stream")) is not None and 0 < stream.status < 500 and not stream.stream:
        lacks["stream"] = f'a request with "stream": true is answered {stream.status}, not as an event stream'
    if (cors := seen.answers.get("cors")) is not None and not cors.allowed:
        lacks["cors"] = f"a preflight (OPTIONS) is answered {cors.status} without Access-Control-Allow-Origin"
    natively = seen.answers.get("native-tools")
    absent = {
        "text-tools": "text-tools" in seen.answers and not dialects,
        "native-tools": natively is not None and not natively.calls and not natively.native,
    }
    lacks |= {name: f"{_TOOLS[name]} does not reach the client as a call of a tool" for name in absent if absent[name]}
    if (title := seen.answers.get("title-intercept")) is not None:
        asked = [method for method in title.methods if method in _OPENING]
        if asked or not title.served:
            lacks["title-intercept"] = f"a request for a title {f'sends {asked[0]}' if asked else f'is answered {_shown(title)}'}"
    xml = seen.answers.get("obsidian-xml")
    if xml is not None and ("tool_call" not in dialects or xml.calls or "<tool_call>" not in xml.text):
        lacks["obsidian-xml"] = "`x-proxy-output-mode: obsidian-xml` does not put the calls into the text"
    if "responses" in lacks:
        lacks |= dict.fromkeys(("title-intercept", "obsidian-xml"), "it needs POST /v1/responses")
    return {name: lacks[name] for name in CAPABILITIES if name in lacks}


_TOOLS = {
    "text-tools": "a call that the model writes in its text (<tool_call>, <use_tool> or a fenced block)",
    "native-tools": "a call that the model makes natively",
}


def _asked(seen: Observed) -> list[tuple[str, Answer]]:
    return [(name, seen.answers[name]) for name in ("chat", "responses", "models") if name in seen.answers]


def _route(name: str) -> str:
    return f"{'GET' if name == 'models' else 'POST'} {PATHS[name]}"


def table(found: FoundProxy) -> dict[str, object]:
    """Return the settings for the table `[tool.codex-replay.proxy.NAME]`, without settings that equal their defaults."""
    keys: dict[str, object] = {}
    if found.profile not in (None, "default"):
        keys["profile"] = found.profile
    if found.ready != READY_PATH:
        keys["ready"] = found.ready
    if found.ready_seconds != READY_SECONDS:
        keys["ready_seconds"] = found.ready_seconds
    if found.clients is not None and found.clients < CLIENTS:
        keys["clients"] = found.clients
    if found.dialects and found.dialects != ("tool_call",):
        keys["tool_calls"] = list(found.dialects)
    if found.lacks:
        keys["capabilities"] = list(found.capabilities)
    return keys
