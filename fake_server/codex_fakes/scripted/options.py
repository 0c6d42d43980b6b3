"""Command-line options that a Codex version refuses: an unsupported --listen, and unknown features."""

from __future__ import annotations

import os

from codex_replay.protocol.data_tables import load, unavailable
from codex_replay.protocol.turn.frames import load_table
from codex_replay.protocol.versions import DEFAULT, LISTENS, numbers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TRANSPORTS = ("--listen", "--stdio")


def unlistening(options: list[tuple[str, str]], version: str) -> str:
    """Return the error message for `--listen` or `--stdio` if the version does not have these options, otherwise ""."""
    first = next((name for name, _ in options if name in TRANSPORTS), None)
    if first is None or numbers(version) >= numbers(LISTENS):
        return ""
    return (
        f"error: unexpected argument '{first}' found\n\nUsage: codex app-server [OPTIONS] [COMMAND]\n\n"
        "For more information, try '--help'.\n"
    )


def refused(options: list[tuple[str, str]], version: str) -> tuple[str, int]:
    """Return the real server's message and exit status for the first invalid option.

    If all options are valid, the message is empty.
    """
    if message := unlistening(options, version):
        return message, 2
    if unavailable("turn", version):
        return "", 0  # the server reports it
    if features := [value for name, value in options if name in ("--enable", "--disable")]:
        settings = load_table(version)["settings"]
        known = {*settings["features"]["stable"], *settings["features"]["on"], *settings["unstable"]}
        if (unknown := next((name for name in features if name not in known), None)) is not None:
            return f"Error: Unknown feature flag: {unknown}\n", 1
    wrong = _wrong_override([value for name, value in options if name == "-c"]) if version == DEFAULT else None
    return (f"Error: {wrong}\n", 1) if wrong is not None else ("", 0)


def _wrong_override(options: list[str]) -> str | None:
    """Return the error for a `-c` option without a key, without a value, or with a value of a wrong type."""
    from codex_fakes.scripted.state.config_forms import wrong_setting
    from codex_fakes.scripted.state.settings import flags_of

    for option in options:
        if "=" not in option:
            return f"error parsing -c overrides: Invalid override (missing '='): {option}"
        if not option.partition("=")[0].strip():
            return f"error parsing -c overrides: Empty key in override: {option}"
    pairs = [option.partition("=")[::2] for option in options]
    flags = flags_of([(key.strip(), value.strip()) for key, value in pairs])
    wrong = wrong_setting(flags, load("forms", DEFAULT)["settings"])
    text = wrong.text if wrong is not None else _unknown_name(flags)
    return None if text is None else f"error loading default config after config error: {text}"


def _unknown_name(flags: dict[str, Any]) -> str | None:
    """Return the error for a profile or a provider that the options and config.toml do not define."""
    if not {"profile", "model_provider"} & flags.keys():
        return None
    from codex_fakes.scripted.state.settings import BrokenConfig, Settings, merged, read_config

    home = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    try:
        if Settings(merged(read_config(home, [])[0], flags), "/", home, {}, DEFAULT).wrong() is None:
            return None
    except BrokenConfig:
        pass  # the options alone count
    return Settings(flags, "/", home, {}, DEFAULT).wrong()
