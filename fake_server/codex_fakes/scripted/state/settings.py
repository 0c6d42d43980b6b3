"""The settings of a thread of the scripted fake: the defaults of 0.92, the user's config.toml, `-c` options, and the request.

Only settings that show on the wire are read: model, provider, approval policy, sandbox, effort, retries.
"""

from __future__ import annotations

from time import gmtime, localtime, strftime

from codex_fakes.scripted.state.form import wrong_setting
from codex_replay.protocol.data_tables import load

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
    """The settings of one thread. `config` is the merged configuration, nested like config.toml."""

    def __init__(self, config: Mapping[str, Any], cwd: str, home: str, limits: Mapping[str, Any], version: str) -> None:
        self.config, self.cwd, self.home, self._limits, self.version = config, cwd, home, limits, version
        self.model: str = config.get("model") or limits.get("model") or "gpt-5.2-codex"
        self.provider: str = config.get("model_provider") or "openai"
        self.policy: str = config.get("approval_policy") or "on-request"
        mode = config.get("sandbox_mode")
        self.sandbox: dict[str, Any] = sandbox_v2(mode if isinstance(mode, str) and mode else "read-only")
        self.effort: str | None = config.get("model_reasoning_effort")
        self.summary: str | None = config.get("model_reasoning_summary")
        self.base_instructions: str | None = None
        self.developer_instructions: str | None = config.get("developer_instructions")
        self.mode = "custom"

    def copy(self) -> Settings:
        """Return the same settings for another thread."""
        other = Settings.__new__(Settings)
        other.__dict__.update(self.__dict__)
        return other

    def model_view(self) -> tuple[Any, ...]:
        """Return the settings in the model's input, which is sent again when they change; a path is compared by its parts."""
        rooted, parts = self.cwd.startswith("/"), [part for part in self.cwd.split("/") if part not in ("", ".")]
        return (rooted, *parts), self.policy, self.sandbox

    def change(self, given: Mapping[str, Any], api: str) -> bool:
        """Apply the overrides of a request (null and absent ones change nothing); return True if there was any."""
        changed = False
        names = (
            ("cwd", "cwd"), ("model", "model"), ("modelProvider", "provider"), ("approvalPolicy", "policy"), ("effort", "effort"),
            ("summary", "summary"), ("baseInstructions", "base_instructions"),
            ("developerInstructions", "developer_instructions"),
        )  # fmt: skip
        for key, name in names:
            if given.get(key) is not None:
                setattr(self, name, given[key])
                changed = True
        sandbox = given.get("sandbox") or given.get("sandboxPolicy")
        if sandbox is not None:
            self.sandbox = sandbox_v2(sandbox)
            changed = True
        mode = given.get("collaborationMode")
        if isinstance(mode, dict):
            self.mode = mode.get("mode", "custom")
            chosen = mode.get("settings") or {}
            self.model, self.effort = chosen.get("model") or self.model, chosen.get("reasoning_effort")
            changed = True
        return changed or given.get("personality") is not None

    def wrong(self) -> str | None:
        """Return the real server's error for a configuration without valid settings."""
        if (wrong := wrong_setting(self.config, load("forms", self.version)["settings"])) is not None:
            return wrong
        profile = self.config.get("profile")
        if profile is not None and profile not in (self.config.get("profiles") or {}):
            return f"config profile `{profile}` not found"
        providers = self.config.get("model_providers")
        known = (*_PROVIDERS, *(providers if isinstance(providers, dict) else ()))
        return None if self.provider in known else f"Model provider `{self.provider}` not found"

    def retries(self) -> tuple[int, int]:
        """Return how often a request, and how often a stream, is tried again."""
        provider = self._provider()
        return (
            provider.get("request_max_retries", self._limits["requestRetries"]),
            provider.get("stream_max_retries", self._limits["streamRetries"]),
        )

    def idle_seconds(self) -> float:
        """Return how long a stream may stand still, in seconds."""
        return float(self._provider().get("stream_idle_timeout_ms", self._limits["idleMs"])) / 1000

    def url(self) -> str:
        """Return where the real binary would send its requests; nothing is sent there."""
        base = self._provider().get("base_url") or "https://api.openai.com/v1"
        return f"{base}/responses"

    def _provider(self) -> Mapping[str, Any]:
        providers = self.config.get("model_providers")
        provider = providers.get(self.provider) if isinstance(providers, dict) else None
        return provider if isinstance(provider, dict) else {}

    def abilities(self) -> dict[str, Any]:
        """Return the table's row of the model: by the longest name that it begins with."""
        models: dict[str, dict[str, Any]] = self._limits["models"]
        known = [name for name in models if self.model.startswith(name)]
        return models[max(known, key=len) if known else "*"]

    def window(self) -> int | None:
        """Return the model's context window in tokens, or None for a model that 0.92 does not know."""
        given = self.config.get("model_context_window")
        if type(given) is int:
            return given * 95 // 100
        found: int | None = self.abilities()["window"]
        return found

    def feature(self, name: str) -> bool:
        """Return True if the configuration switches a feature on."""
        features = self.config.get("features")
        return isinstance(features, dict) and features.get(name) is True

    def rollout(self, thread: str, created: float, archived: bool) -> str:
        """Return the path that the real server would keep a thread under."""
        moment = localtime(created)
        name = f"rollout-{strftime('%Y-%m-%dT%H-%M-%S', moment)}-{thread}.jsonl"
        folder = "archived_sessions" if archived else f"sessions/{strftime('%Y/%m/%d', moment)}"
        return f"{self.home}/{folder}/{name}"


def absolute(path: str, base: str) -> str:
    """Return a thread's place as the real server writes it: from `base`, with ~, without empty, . and .. parts."""
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
    """Return a sandbox setting in v2's form, from a mode ("read-only") or a policy of v1 or v2."""
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


def read_config(home: str, overrides: list[tuple[str, str]]) -> dict[str, Any]:
    """Return $CODEX_HOME/config.toml with the `-c key=value` options on top; raises `ValueError` with a sentence."""
    config: dict[str, Any] = {}
    try:
        with open(f"{home}/config.toml", "rb") as file:
            text = file.read().decode("utf-8", "replace")
    except OSError:
        text = ""
    if text or overrides:
        from codex_fakes.scripted.state.plain_toml import loads

        try:
            config = loads(text)
        except ValueError as error:
            raise ValueError(f"{home}/config.toml is not TOML: {error}") from None
        for key, value in overrides:
            try:
                given: Any = loads(f"x = {value}")["x"]
            except ValueError:
                given = value  # as the real codex: what is not TOML is a string
            put(config, key, given)
    return config


def put(config: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key of a nested configuration."""
    *tables, last = key.split(".")
    for name in tables:
        if not isinstance(config.get(name), dict):
            config[name] = {}
        config = config[name]
    config[last] = value


def rfc3339(moment: float, milliseconds: bool = False) -> str:
    """Return a moment in UTC as v1 writes it."""
    text = strftime("%Y-%m-%dT%H:%M:%S", gmtime(moment))
    return f"{text}.{int(moment * 1000) % 1000:03d}Z" if milliseconds else f"{text}Z"
