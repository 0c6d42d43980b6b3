"""What `--proxy` names: the reference, a command line, the URL of one that runs, or a `[tool.codex-replay.proxy.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from codex_replay.plugin.base.programs import program
from codex_replay.plugin.base.subjects import BadSubject, SubjectOption

#: What a proxy may leave out; a check that needs it is then skipped, and the report says so.
CAPABILITIES = (
    *("chat", "responses", "stream", "models", "text-tools", "native-tools", "obsidian-xml", "title-intercept"),
    "cors",
)
READY_PATH, READY_SECONDS = "/v1/models", 20.0
KEY = "sk-codex-replay"
_TABLE_KEYS = ("command", "url", "ready", "ready_seconds", "key", "env", "capabilities")


@dataclass(frozen=True, slots=True)
class ProxySubject:
    """A proxy under test: a command (`{port}`, `{codex}` and `{key}` in it are filled in) or, with `url`, one that runs.

    `ready` is the path that answers when it is ready, `key` the bearer that it takes, `env` what is added to its environment.
    """

    name: str
    argv: tuple[str, ...] = ()
    url: str | None = None
    ready: str = READY_PATH
    ready_seconds: float = READY_SECONDS
    key: str = KEY
    env: Mapping[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = CAPABILITIES


def parse_proxy(text: str | None, table: Mapping[str, Any]) -> ProxySubject:
    """Return the proxy that `text` names; `table` is `[tool.codex-replay.proxy]`. Raises `BadSubject`.

    Without a text it is the only one of the table, else the reference.
    """
    if text is None:
        text = next(iter(table)) if len(table) == 1 else "reference"
    choice = _option(table).parse(text, table)
    if choice.kind == "entry":
        return _from_table(text, table[text])
    if choice.kind == "name":
        return ProxySubject(text, tuple(program("codex_replay.reference.proxy.__main__", packages=True)))
    if choice.kind == "url":
        return ProxySubject(text, url=choice.value.removesuffix("/v1"))
    return ProxySubject(text, choice.argv)


def _from_table(name: str, row: Any) -> ProxySubject:
    where = f"[tool.codex-replay.proxy.{name}]"
    if not isinstance(row, Mapping) or ("command" in row) == ("url" in row):
        raise BadSubject(f"{where} must have either a command or a url.")
    if unknown := [key for key in row if key not in _TABLE_KEYS]:
        raise BadSubject(f"{where} has no key {unknown[0]!r}. Its keys are {', '.join(_TABLE_KEYS)}.")
    env = row.get("env", {})
    if not isinstance(env, Mapping) or not all(isinstance(value, str) for value in env.values()):
        raise BadSubject(f"{where} env must be a table of strings.")
    able = row.get("capabilities", list(CAPABILITIES))
    if not isinstance(able, list) or any(each not in CAPABILITIES for each in able):
        raise BadSubject(f"{where} capabilities must be a list of some of {', '.join(CAPABILITIES)}.")
    seconds = row.get("ready_seconds", READY_SECONDS)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise BadSubject(f"{where} ready_seconds must be a number of seconds.")
    for key in ("command", "url", "ready", "key"):
        if not isinstance(row.get(key, ""), str):
            raise BadSubject(f"{where} {key} must be a string.")
    return ProxySubject(
        name,
        _option({}).words(row["command"], name) if "command" in row else (),
        row["url"].rstrip("/").removesuffix("/v1") if "url" in row else None,
        row.get("ready", READY_PATH),
        float(seconds),
        row.get("key", KEY),
        dict(env),
        tuple(able),
    )


def _option(table: Mapping[str, Any]) -> SubjectOption:
    named = f"; the names of the pyproject.toml are {', '.join(table)}" if table else ""
    return SubjectOption("--proxy", f"reference, a URL, or a whole command line{named}", ("reference",), url=True)
