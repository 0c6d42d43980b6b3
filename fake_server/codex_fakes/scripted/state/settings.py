"""The settings of a thread of the scripted fake: the defaults of 0.92, the user's config.toml, `-c` options, and the request.

Only settings that are visible in the traffic are read: model, provider, approval policy, sandbox, effort, retries."""

from __future__ import annotations

from time import gmtime, localtime, strftime

from codex_fakes.scripted.state.config_forms import wrong_setting
from codex_replay.protocol.data_tables import load
from codex_replay.protocol.turn.frames import fill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_SANDBOXES = {
    "read-only": "readOnly",
    "workspace-write": "workspaceWrite",
    "danger-full-access": "dangerFullAccess",
    "external-sandbox": "externalSandbox",
}
_PROVIDERS = ("openai", "ollama", "ollama-chat", "lmstudio")  # those that 0.92 brings along


class Settings:
    """The settings of one thread.

    `config` is the merged configuration, nested like config.toml. `profile` is the profile in the request of the client,
    which replaces the profile in the configuration.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        cwd: str,
        home: str,
        limits: Mapping[str, Any],
        version: str,
        profile: str | None = None,
    ) -> None:
        self.profile: str | None = profile or config.get("profile")
        profiles = config.get("profiles")
        chosen = profiles.get(self.profile) if type(profiles) is dict and type(self.profile) is str else None
        if type(chosen) is dict:
            config = {**config, **chosen}
        self.config, self.cwd, self.home, self._limits, self.version = config, cwd, home, limits, version
        model = config.get("model")
        self.model: str = model if model is not None else limits.get("model") or "gpt-5.2-codex"
        self.provider: str = config.get("model_provider") or "openai"
        self._default_access()
        self.effort: str | None = config.get("model_reasoning_effort")
        self.summary: str | None = config.get("model_reasoning_summary")
        self.base_instructions: str | None = None
        self.developer_instructions: str | None = config.get("developer_instructions")
        self.compact_prompt: str | None = config.get("compact_prompt")
        tier = config.get("service_tier")
        self.personality: str | None = config.get("personality")
        self.tier: str | None = self._current("tierAliases", tier)
        self.mode, self.mode_instructions = "custom", ""  # the collaboration mode, and its instructions

    def _default_access(self) -> None:
        """Set the approval policy and the sandbox of a thread from the configuration.

        If the configuration does not set them, use the defaults for a trusted or an untrusted directory.
        """
        projects, mode = self.config.get("projects"), self.config.get("sandbox_mode")
        project = projects.get("/" + self.cwd.strip("/")) if isinstance(projects, dict) else None
        trust = project.get("trust_level") if isinstance(project, dict) else None
        policy = self.config.get("approval_policy") or ("untrusted" if trust == "untrusted" else "on-request")
        self.policy: str = self._current("policyAliases", policy)
        default = "read-only" if trust is None else "workspace-write"
        self.sandbox: dict[str, Any] = self._sandbox_of(mode if isinstance(mode, str) and mode else default)

    def _current(self, aliases: str, word: Any) -> Any:
        """Return the current word for an old word of a setting. A value that is not a text is refused later."""
        return self._limits.get(aliases, {}).get(word, word) if type(word) is str else word

    def copy(self) -> Settings:
        """Return a copy of the settings for another thread."""
        other = Settings.__new__(Settings)
        other.__dict__.update(self.__dict__)
        return other

    def model_view(self) -> tuple[Any, ...]:
        """Return the settings that are part of the model's input.

        If a setting of the model's input changes, its text is sent to the model again. Paths are compared segment by
        segment.
        """
        rooted, parts = self.cwd.startswith("/"), [part for part in self.cwd.split("/") if part not in ("", ".")]
        return (rooted, *parts), self.policy, self.sandbox

    def change(self, given: Mapping[str, Any], api: str) -> bool:
        """Apply the settings in a request of the client; null and absent members are ignored.

        Return True if the request has any setting.
        """
        changed = False
        names = (
            ("cwd", "cwd"), ("model", "model"), ("modelProvider", "provider"), ("approvalPolicy", "policy"), ("effort", "effort"),
            ("summary", "summary"), ("baseInstructions", "base_instructions"),
            ("developerInstructions", "developer_instructions"), ("compactPrompt", "compact_prompt"),
            ("personality", "personality"),
        )  # fmt: skip
        for key, name in names:
            if given.get(key) is not None:
                setattr(self, name, given[key])
                changed = True
        if "serviceTier" in given:  # null is a choice, too
            tier = given["serviceTier"]
            self.tier = "default" if tier is None else self._current("tierAliases", tier)
        sandbox = given.get("sandbox") or given.get("sandboxPolicy")
        if sandbox is not None:
            self.sandbox = self._sandbox_of(sandbox)
            changed = True
        mode = given.get("collaborationMode")
        if isinstance(mode, dict):
            self.mode = mode.get("mode", "custom")
            chosen = mode.get("settings") or {}
            self.mode_instructions = chosen.get("developer_instructions") or ""
            self.model, self.effort = chosen.get("model") or self.model, chosen.get("reasoning_effort")
            changed = True
        return changed

    def _sandbox_of(self, given: Any) -> dict[str, Any]:
        """Return a sandbox setting in the form of the v2 API.

        If the setting is only a mode, the configuration supplies its other members.
        """
        if given == "workspace-write" and isinstance(self.config.get("sandbox_workspace_write"), dict):
            return sandbox_v2({"type": given, **self.config["sandbox_workspace_write"]})
        return sandbox_v2(given)

    def mode_view(self) -> tuple[Any, ...]:
        """Return the collaboration mode of the thread.

        If the mode changes, its instructions are sent to the model.
        """
        return self.mode, self.model, self.effort, self.mode_instructions

    def mode_text(self) -> str:
        """Return the instructions of the collaboration mode in the form for the model, or ""."""
        return f"<collaboration_mode>{self.mode_instructions}</collaboration_mode>" if self.mode_instructions else ""

    def wrong(self) -> str | None:
        """Return the real server's error for a configuration with invalid settings, or None."""
        if (wrong := wrong_setting(self.config, load("forms", self.version)["settings"])) is not None:
            return wrong.text
        if (why := refused_value(self.config, self._limits)) is not None:
            return why
        if self.profile is not None and self.profile not in (self.config.get("profiles") or {}):
            return f"config profile `{self.profile}` not found"
        providers = self.config.get("model_providers")
        known = (*_PROVIDERS, *(providers if isinstance(providers, dict) else ()))
        return None if self.provider in known else f"Model provider `{self.provider}` not found"

    def retries(self) -> tuple[int, int]:
        """Return the number of retries of a request, and the number of retries of a stream."""
        provider = self._provider()
        return (
            provider.get("request_max_retries", self._limits["requestRetries"]),
            provider.get("stream_max_retries", self._limits["streamRetries"]),
        )

    def idle_seconds(self) -> float:
        """Return the longest time without an event in a stream, in seconds."""
        return float(self._provider().get("stream_idle_timeout_ms", self._limits["idleMs"])) / 1000

    def url(self) -> str:
        """Return the URL to which the real binary would send its requests.

        The fake sends no requests, but its error messages contain the URL.
        """
        base = self._provider().get("base_url") or "https://api.openai.com/v1"
        return f"{base}/responses"

    def missing_key(self) -> dict[str, Any] | None:
        """If the environment lacks the key of the model provider, return the cause of a failed request."""
        from posix import environ

        provider = self._provider()
        name, hint = provider.get("env_key"), provider.get("env_key_instructions")
        if type(name) is not str or environ.get(name.encode(), b"").strip():
            return None
        return {"break": "no-key", "key": name, "hint": f" {hint}" if hint else ""}

    def _provider(self) -> Mapping[str, Any]:
        providers = self.config.get("model_providers")
        provider = providers.get(self.provider) if isinstance(providers, dict) else None
        return provider if isinstance(provider, dict) else {}

    def abilities(self) -> dict[str, Any]:
        """Return the row of the table for the model: among the rows whose name is a beginning of the model's name, the row with
        the longest name.
        """
        models: dict[str, dict[str, Any]] = self._limits["models"]
        known = [name for name in models if self.model.startswith(name)]
        return models[max(known, key=len) if known else "*"]

    def service_tier(self) -> str | None:
        """Return the chosen service tier, or None if the model does not have it."""
        tiers: dict[str, list[str]] = self._limits.get("serviceTiers", {"*": []})
        return self.tier if self.tier in tiers["known" if "known" in tiers and self.abilities().get("known") else "*"] else None

    def has_patches(self) -> bool:
        """Return True if the model is offered the tool apply_patch."""
        return bool(self.abilities().get("patch", True)) or self.feature("apply_patch_freeform")

    def window(self) -> int | None:
        """Return the model's context window in tokens, or None for a model that 0.92 does not know."""
        given = self.config.get("model_context_window")
        if type(given) is int:
            return given * 95 // 100
        found: int | None = self.abilities()["window"]
        return found

    def output_budget(self) -> tuple[int, str]:
        """Return the maximum length of a command's output for the model."""
        from codex_replay.protocol.turn.output import CHARS, TOKENS

        tokens = self.abilities().get("output", self._limits.get("output", "tokens")) == "tokens"
        given = self.config.get("tool_output_token_limit")
        if type(given) is not int:
            return TOKENS if tokens else CHARS
        return (given, "tokens") if tokens else (given * 4, "chars")

    def compaction_limit(self) -> int | None:
        """Return the number of tokens at which the context is compacted: nine tenths of the whole context window."""
        limit, whole = self.config.get("model_auto_compact_token_limit"), self.config.get("model_context_window")
        if type(limit) is int:
            return limit
        window = self.abilities()["window"]
        if type(whole) is not int:
            whole = None if window is None else -(-window * 100 // 95)  # the reported window is 95 % of it
        return None if whole is None else whole * 9 // 10

    def feature(self, name: str) -> bool:
        """Return True if the configuration switches a feature on, by its current name or an old name."""
        features = self.config.get("features")
        old = [alias for alias, meant in self._limits.get("aliases", {}).items() if meant == name]
        if any(self.config.get(alias) is True for alias in old if alias != "web_search"):
            return True
        return isinstance(features, dict) and any(features.get(each) is True for each in (name, *old))

    def rollout(self, thread: str, created: float, archived: bool) -> str:
        """Return the path at which the real server would store a thread."""
        moment = localtime(created)
        name = f"rollout-{strftime('%Y-%m-%dT%H-%M-%S', moment)}-{thread}.jsonl"
        folder = "archived_sessions" if archived else f"sessions/{strftime('%Y/%m/%d', moment)}"
        return f"{self.home}/{folder}/{name}"


def refused_value(config: Mapping[str, Any], limits: Mapping[str, Any]) -> str | None:
    """Return the real server's error for a setting that it no longer supports, or None. `limits` is the table of the version."""
    for key, value, text in limits.get("refused", ()):
        given = config.get(key)
        if given is not None and value in (None, given):
            return str(fill(text, {"value": given}))
    return None


def absolute(path: str, base: str) -> str:
    """Return the absolute path of a thread's directory in the form of the real server.

    A relative path begins at `base`, ~ is expanded, and the segments "", "." and ".." are resolved.
    """
    if path == "~" or path.startswith("~/"):
        from posix import environ

        path = environ.get(b"HOME", b"/").decode("utf-8", "surrogateescape") + path[1:]
    parts: list[str] = []
    for part in (path if path.startswith("/") else f"{base}/{path}").split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def sandbox_v2(given: Any) -> dict[str, Any]:
    """Return a sandbox setting in the form of the v2 API. `given` is a mode ("read-only"), or a policy of the v1 or v2 API."""
    if isinstance(given, str):
        given = {"type": given}
    kind = given.get("type") or given.get("mode") or "read-only"
    kind = _SANDBOXES.get(kind, kind)
    if kind != "workspaceWrite":
        return (
            {"type": kind}
            if kind != "externalSandbox"
            else {"type": kind, "networkAccess": given.get("networkAccess", "restricted")}
        )
    return {
        "type": kind,
        "writableRoots": given.get("writableRoots", given.get("writable_roots", [])),
        "networkAccess": given.get("networkAccess", given.get("network_access", False)),
        "excludeTmpdirEnvVar": given.get("excludeTmpdirEnvVar", given.get("exclude_tmpdir_env_var", False)),
        "excludeSlashTmp": given.get("excludeSlashTmp", given.get("exclude_slash_tmp", False)),
    }


TOO_DEEP = "recursion limit"


class BrokenConfig(ValueError):
    """config.toml is not TOML; `text` is its content."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


def read_config(home: str, overrides: list[tuple[str, str]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the configuration in $CODEX_HOME/config.toml, and the configuration of the `-c key=value` options.

    Raises `BrokenConfig` if config.toml is not TOML.
    """
    try:
        with open(f"{home}/config.toml", "rb") as file:
            text = file.read().decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:
        text = ""
    config: dict[str, Any] = {}
    if text:
        from codex_fakes.scripted.state.plain_toml import is_too_deep, loads

        if is_too_deep(text):
            raise BrokenConfig(TOO_DEEP, text)
        try:
            config = loads(text)
        except ValueError as error:
            raise BrokenConfig(f"{home}/config.toml is not TOML: {error}", text) from None
    return config, flags_of(overrides)


def flags_of(overrides: list[tuple[str, str]]) -> dict[str, Any]:
    """Return the configuration of the `-c key=value` options."""
    flags: dict[str, Any] = {}
    for key, value in overrides:
        from codex_fakes.scripted.state.plain_toml import loads

        try:
            given: Any = loads(f"x = {value}")["x"]
        except ValueError:
            given = value  # as the real codex: what is not TOML is a string
        put(flags, key, given)
    return flags


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the merged tables of two configurations, `old` and `new`.

    If both configurations have a key, the value in `new` counts.
    """
    both = dict(old)
    for key, value in new.items():
        tables = isinstance(value, dict) and isinstance(old.get(key), dict)
        both[key] = merged(old[key], value) if tables else value
    return both


def put(config: dict[str, Any], key: str, value: Any) -> None:
    """Set the value of a dotted key in a nested configuration."""
    *tables, last = key.split(".")
    for name in tables:
        if not isinstance(config.get(name), dict):
            config[name] = {}
        config = config[name]
    config[last] = value


def without_nulls(value: Any) -> Any:
    """Return a value of JSON with an empty text in place of each null."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items()}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else "" if value is None else value


def rfc3339(moment: float, milliseconds: bool = False) -> str:
    """Return a time in UTC in the form of the v1 API."""
    text = strftime("%Y-%m-%dT%H:%M:%S", gmtime(moment))
    return f"{text}.{int(moment * 1000) % 1000:03d}Z" if milliseconds else f"{text}Z"


def beginning(settings: Settings) -> list[dict[str, Any]]:
    """Return the first items of a request to the model, without the texts that only the real binary contains."""
    place = f"<environment_context>\n  <cwd>{settings.cwd}</cwd>\n  <shell>bash</shell>\n</environment_context>"
    report = (("developer", settings.developer_instructions), ("developer", settings.mode_text()), ("user", place))
    shown = [{"type": "message", "role": r, "content": [{"type": "input_text", "text": text}]} for r, text in report if text]
    return [unsent(settings, opens=True), *shown]


def unsent(settings: Settings, opens: bool = False) -> dict[str, Any]:
    """Return an item that represents texts which only the real binary contains: the permissions and, if the item `opens` a
    thread, the user's instructions.

    Estimates of tokens use the size of the texts that the fake lacks.
    """
    return {"type": "unsent", "opens": opens, "cwd": settings.cwd, "policy": settings.policy, "sandbox": settings.sandbox}
