"""Find the proxy that `--proxy` names: the reference, a command line, the URL of a running proxy, or a table
`[tool.codex-replay.proxy.NAME]`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codex_replay.plugin.base.configuration import (
    COUNT,
    FILES,
    SECONDS,
    SUBJECT_KEYS,
    TABLE,
    TEXT,
    TEXTS,
    TEXTS_BY_NAME,
    Kind,
    check_keys,
    did_you_mean,
)
from codex_replay.plugin.base.subjects import BadSubject, SubjectOption
from codex_replay.plugin.proxy.dialects import DIALECTS, Dialect, parse
from codex_replay.shell.process.programs import program

#: The optional features of a proxy; a check that needs a missing one is skipped, and the report lists it.
CAPABILITIES = (
    *("chat", "responses", "stream", "models", "text-tools", "native-tools", "obsidian-xml", "title-intercept"),
    "cors",
)
#: The capabilities of which one is enough for a request that declares tools.
_TOOLS = ("text-tools", "native-tools")
#: The endpoints that a proxy may have one of.
_ENDPOINTS = {"/v1/chat/completions": "chat", "/v1/responses": "responses"}
READY_PATH, READY_SECONDS = "/v1/models", 20.0
KEY = "sk-codex-replay"
#: How many clients a case asks with at once, if the proxy bears so many.
CLIENTS = 8
#: The milliseconds after which the model begins each answer: without them many races of a proxy never occur.
MODEL_MS = 20.0
_ROW: dict[str, Kind] = {
    **SUBJECT_KEYS,
    "url": TEXT,
    "profile": TEXT,
    "ready": TEXT,
    "ready_seconds": SECONDS,
    "clients": COUNT,
    "model_ms": ("a number of milliseconds, 0 or more", lambda given: type(given) in (int, float) and 0 <= given <= 10_000),
    "key": TEXT,
    "env": TEXTS_BY_NAME,
    "capabilities": TEXTS,
    "tool_calls": ("the name of a dialect, a table, or a list of them", lambda given: isinstance(given, str | dict | list)),
}


@dataclass(frozen=True, slots=True)
class ProxySubject:
    """A proxy under test.

    The user gives a proxy as a command, in which `{port}`, `{codex}` and `{key}` are replaced, or as the `url` of a running
    proxy.

    `ready` is a path on which the proxy answers once it is ready. `key` is the bearer token that the proxy accepts. `env`
    has additional environment variables for the proxy. `clients` is the number of clients that the proxy can serve in
    parallel. `tool_calls` are the dialects (forms of markup) in which the proxy recognises tool calls in a text. `model_ms`
    is the delay of the model's answers in milliseconds.
    """

    name: str
    argv: tuple[str, ...] = ()
    url: str | None = None
    ready: str = READY_PATH
    ready_seconds: float = READY_SECONDS
    key: str = KEY
    env: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = CAPABILITIES
    clients: int = CLIENTS
    tool_calls: tuple[Dialect, ...] = (DIALECTS["tool_call"],)
    model_ms: float = MODEL_MS

    @property
    def able(self) -> tuple[str, ...]:
        """The names of the proxy's capabilities and of its tool-call dialects."""
        return (*self.capabilities, *(dialect.id for dialect in self.tool_calls))


def capabilities_of(path: str, body: Any) -> list[str]:
    """Return the capabilities that a proxy needs for a request: the endpoint, and streaming if the body asks for a stream."""
    endpoint = _ENDPOINTS.get(path.partition("?")[0])
    if endpoint is None:
        return []
    return [endpoint, "stream"] if isinstance(body, Mapping) and body.get("stream") is True else [endpoint]


def tools_of(able: Collection[str], body: Any) -> list[str]:
    """Return the capabilities of which a proxy needs at least one for a request with tools.

    Return [] if `able` has one of them, or if the request has no tools.
    """
    declared = isinstance(body, Mapping) and body.get("tools")
    return [*_TOOLS] if declared and not any(each in able for each in _TOOLS) else []


def not_claimed(subject: ProxySubject, lacking: Iterable[str]) -> str:
    """Return the reason why a case is skipped.

    `lacking` are the capabilities, or the tool-call dialects, that the proxy lacks.
    """
    names = [f"tool_calls {name}" if name in DIALECTS else name for name in lacking]
    return f"not verified: {subject.name} does not declare the capability {', '.join(names)}"


def parse_proxy(text: str | None, table: Mapping[str, Any], file: str = FILES[0]) -> ProxySubject:
    """Return the proxy that `text` names; `table` is the table `[tool.codex-replay.proxy]` of the file `file`.

    Raises `BadSubject` if `text` names no proxy.

    If `text` is None, return the only proxy in the table, or the reference proxy if the table has no proxy.
    """
    if text is None:
        text = next(iter(table)) if len(table) == 1 else "reference"
    choice = _option(table).parse(text, table)
    if choice.kind == "entry":
        return _from_table(text, table[text], file)
    if choice.kind == "name":
        return ProxySubject(
            text, tuple(program("codex_replay.reference.proxy.__main__", packages=True)), tool_calls=tuple(DIALECTS.values())
        )
    if choice.kind == "url":
        return ProxySubject(text, url=choice.value.removesuffix("/v1"))
    return ProxySubject(text, choice.argv)


def _from_table(name: str, row: Any, file: str) -> ProxySubject:
    where = f"{file}: [{TABLE}.proxy.{name}]"
    if isinstance(row, Mapping):
        check_keys(where, row, _ROW)  # first: a mistyped `command` is the cause of a missing one
    if not isinstance(row, Mapping) or ("command" in row) == ("url" in row):
        raise BadSubject(f"{where} must have either a command or a url.")
    able = row.get("capabilities", list(CAPABILITIES))
    if unknown := [each for each in able if each not in CAPABILITIES]:
        raise BadSubject(
            f"{where} capabilities must be a list of: {', '.join(CAPABILITIES)}, "
            f"not {unknown[0]!r}{did_you_mean(unknown[0], CAPABILITIES)}"
        )
    return ProxySubject(
        name,
        _option({}).split_command(row["command"], name) if "command" in row else (),
        row["url"].rstrip("/").removesuffix("/v1") if "url" in row else None,
        row.get("ready", READY_PATH),
        float(row.get("ready_seconds", READY_SECONDS)),
        row.get("key", KEY),
        dict(row.get("env", {})),
        tuple(able),
        row.get("clients", CLIENTS),
        parse(row.get("tool_calls", "tool_call"), where),
        float(row.get("model_ms", MODEL_MS)),
    )


def _option(table: Mapping[str, Any]) -> SubjectOption:
    named = f"; the names of the configuration are {', '.join(table)}" if table else ""
    return SubjectOption("--proxy", f"reference, a URL, or a whole command line{named}", ("reference",), url=True)
