"""What `--proxy` names: the reference, a command line, the URL of one that runs, or a `[tool.codex-replay.proxy.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.plugin.commands import BadCommand, command_of
from harness.plugin.programs import program

#: What a proxy may leave out; a check that needs it is then skipped, and the report says so.
CAPABILITIES = ("chat", "responses", "stream", "models", "text-tools", "native-tools", "obsidian-xml", "title-intercept")
READY_PATH, READY_SECONDS = "/v1/models", 20.0
KEY = "sk-codex-replay"
_TABLE_KEYS = ("command", "url", "ready", "ready_seconds", "key", "env", "capabilities")


class BadProxy(ValueError):
    """No such proxy; the text is a sentence that says what would be one."""


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
    """Return the proxy that `text` names; `table` is `[tool.codex-replay.proxy]`. Raises `BadProxy`.

    Without a text it is the only one of the table, else the reference.
    """
    if text is None:
        text = next(iter(table)) if len(table) == 1 else "reference"
    if text in table:
        return _from_table(text, table[text])
    if text == "reference":
        return ProxySubject(text, tuple(program("harness.reference.proxy.__main__", packages=True)))
    if text.startswith(("http://", "https://")):
        return ProxySubject(text, url=text.rstrip("/").removesuffix("/v1"))
    return ProxySubject(text, _command(text, text, table))


def _from_table(name: str, row: Any) -> ProxySubject:
    where = f"[tool.codex-replay.proxy.{name}]"
    if not isinstance(row, Mapping) or ("command" in row) == ("url" in row):
        raise BadProxy(f"{where} must have either a command or a url.")
    if unknown := [key for key in row if key not in _TABLE_KEYS]:
        raise BadProxy(f"{where} has no key {unknown[0]!r}. Its keys are {', '.join(_TABLE_KEYS)}.")
    env = row.get("env", {})
    if not isinstance(env, Mapping) or not all(isinstance(value, str) for value in env.values()):
        raise BadProxy(f"{where} env must be a table of strings.")
    able = row.get("capabilities", list(CAPABILITIES))
    if not isinstance(able, list) or any(each not in CAPABILITIES for each in able):
        raise BadProxy(f"{where} capabilities must be a list of some of {', '.join(CAPABILITIES)}.")
    seconds = row.get("ready_seconds", READY_SECONDS)
    if not isinstance(seconds, int | float) or isinstance(seconds, bool):
        raise BadProxy(f"{where} ready_seconds must be a number of seconds.")
    for key in ("command", "url", "ready", "key"):
        if not isinstance(row.get(key, ""), str):
            raise BadProxy(f"{where} {key} must be a string.")
    return ProxySubject(
        name,
        _command(row["command"], name, {}) if "command" in row else (),
        row["url"].rstrip("/").removesuffix("/v1") if "url" in row else None,
        row.get("ready", READY_PATH),
        float(seconds),
        row.get("key", KEY),
        dict(env),
        tuple(able),
    )


def _command(command: str, name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    named = f"; the names of the pyproject.toml are {', '.join(table)}" if table else ""
    try:
        return command_of(f"--proxy {name}", command, f"reference, a URL, or a whole command line{named}")
    except BadCommand as error:
        raise BadProxy(str(error)) from None
