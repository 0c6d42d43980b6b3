"""The environment variables of the proxy (docs/reference-proxy.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

AS_SPECIFIED, WORKS, SPEAKS_V2 = "as-specified", "works-on-0.92", "speaks-v2"
OPENAI_JSON, OBSIDIAN_XML = "openai-json", "obsidian-xml"
MODES = (OPENAI_JSON, OBSIDIAN_XML)
POLICIES = ("untrusted", "on-failure", "on-request", "never")
SANDBOXES = ("read-only", "workspace-write", "danger-full-access")


class BadSetting(ValueError):
    """An environment variable has an invalid value. The message names the variable and its valid values."""


class Settings(NamedTuple):
    """The settings of the reference proxy, from the environment.

    Times are in seconds. `idle` is the longest time within a turn in which the app-server may send nothing.
    """

    codex: str = "codex"
    profile: str = WORKS
    host: str = "127.0.0.1"
    port: int = 8787
    keys: tuple[str, ...] = ()
    workdir: str = "/tmp/codex-work"
    approval_policy: str = "never"
    sandbox: str = "read-only"
    apply_patch: bool = False
    skip_turn: bool = False
    ignore_system: bool = True
    omit_manifest: bool = False
    output_mode: str = OPENAI_JSON
    stream: bool = False
    model: str = "gpt-5.2"
    intercept: bool = True
    children: int = 1
    experimental: bool = False  # whether to ask the app-server for what it keeps for clients with the capability
    rpc_timeout: float = 15.0
    idle: float = 60.0
    tool_calls: Mapping[str, str] | None = None  # the markup of calls in a text; None: that of the specification

    @property
    def as_specified(self) -> bool:
        """Return True if the payloads follow the specification, and False if they follow the behaviour of Codex 0.92."""
        return self.profile == AS_SPECIFIED


def from_env(env: Mapping[str, str]) -> Settings:
    """Read the settings from environment variables.

    An empty variable counts as unset. Raises `BadSetting` if a variable is invalid.
    """
    given = {name: value.strip() for name, value in env.items() if value.strip()}
    usual = Settings()
    keys = f"{given.get('PROXY_API_KEYS', '')},{given.get('PROXY_API_KEY', '')}".split(",")
    return Settings(
        codex=given.get("CODEX_BIN", usual.codex),
        profile=_one_of(given, "PROXY_PROFILE", (AS_SPECIFIED, WORKS, SPEAKS_V2), usual.profile),
        host=given.get("PROXY_HOST", usual.host),
        port=_whole(given, "PROXY_PORT" if "PROXY_PORT" in given else "PORT", 0, 65535, usual.port),
        keys=tuple(key.strip() for key in keys if key.strip()),
        workdir=given.get("PROXY_CODEX_WORKDIR", usual.workdir),
        approval_policy=_one_of(given, "PROXY_APPROVAL_POLICY", POLICIES, usual.approval_policy),
        sandbox=_one_of(given, "PROXY_SANDBOX_MODE", SANDBOXES, usual.sandbox),
        apply_patch=_switch(given, "PROXY_INCLUDE_APPLY_PATCH_TOOL", usual.apply_patch),
        skip_turn=_switch(given, "PROXY_RESPONSES_SKIP_TURN", usual.skip_turn),
        ignore_system=_switch(given, "PROXY_IGNORE_CLIENT_SYSTEM_PROMPT", usual.ignore_system),
        omit_manifest=_switch(given, "PROXY_RESPONSES_OMIT_TOOL_MANIFEST", usual.omit_manifest),
        output_mode=_one_of(given, "PROXY_RESPONSES_OUTPUT_MODE", MODES, usual.output_mode),
        stream=_switch(given, "PROXY_DEFAULT_STREAM", usual.stream),
        model=given.get("PROXY_DEFAULT_MODEL", usual.model),
        intercept=_switch(given, "PROXY_TITLE_SUMMARY_INTERCEPT", usual.intercept),
        children=_whole(given, "PROXY_CHILDREN", 1, 64, usual.children),
        experimental=_switch(given, "PROXY_EXPERIMENTAL_API", usual.experimental),
        rpc_timeout=_whole(given, "PROXY_RPC_TIMEOUT_MS", 1, 3_600_000, 15_000) / 1000,
        tool_calls=_markup(given, "PROXY_TOOL_CALLS"),
        idle=_whole(given, "PROXY_IDLE_TIMEOUT_MS", 1, 3_600_000, 60_000) / 1000,
    )


def _one_of(given: Mapping[str, str], name: str, allowed: tuple[str, ...], usual: str) -> str:
    value = given.get(name, usual)
    if value not in allowed:
        raise BadSetting(f"{name} is {value!r}; it must be {', '.join(allowed)}.")
    return value


def _markup(given: Mapping[str, str], name: str) -> dict[str, str] | None:
    if name not in given:
        return None
    keys = {"open", "close", "content", "name", "arguments"}
    try:
        value = json.loads(given[name])
    except ValueError:
        value = None
    if not isinstance(value, dict) or set(value) != keys or not all(isinstance(each, str) for each in value.values()):
        raise BadSetting(f"{name} is {given[name]!r}; it must be a JSON object of texts: {', '.join(sorted(keys))}.")
    return value


def _switch(given: Mapping[str, str], name: str, usual: bool) -> bool:
    value = given.get(name, str(usual)).lower()
    if value in ("true", "1", "yes", "on"):
        return True
    if value in ("false", "0", "no", "off"):
        return False
    raise BadSetting(f"{name} is {value!r}; it must be true or false.")


def _whole(given: Mapping[str, str], name: str, low: int, high: int, usual: int) -> int:
    value = given.get(name, str(usual))
    if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
        raise BadSetting(f"{name} is {value!r}; it must be a whole number from {low} to {high}.")
    return int(value)
