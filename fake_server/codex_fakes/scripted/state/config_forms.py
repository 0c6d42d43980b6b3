"""Find the settings in a configuration that the real server refuses, and return the server's error messages.

The file forms.json ("settings") has the type of each key. The type is a type of the module `form`, a list of words, or an
object (`struct` with its `members`, `map` for a table of such tables). The first error is the one in the alphabetically
first key, because the server reads the keys in this order.
"""

from __future__ import annotations

from codex_fakes.scripted.state.form import one_of, unlike, wrong_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_NO_WORD = "invalid type: unit variant, expected string only"
#: The members of an MCP server that the other transport has.
_FOREIGN = {
    "stdio": ("url", "bearer_token_env_var", "bearer_token", "http_headers", "env_http_headers"),
    "streamable_http": ("args", "env", "env_vars", "cwd", "bearer_token"),
}


class WrongSetting:
    """A setting that the server refuses: its error `message`, the `path` of its key in the message, the `place` of its value."""

    def __init__(self, message: str, path: tuple[str, ...], place: tuple[str, ...] | None = None) -> None:
        self.message, self.path, self.place = message, path, place or path

    @property
    def text(self) -> str:
        """The error for a configuration that does not come from a file."""
        return f"{self.message}\nin `{'.'.join(self.path)}`\n"

    @property
    def in_file(self) -> str:
        """Return the error for a value in config.toml. The returned error begins with the place of the value."""
        return "wanted string or table" if self.message == _NO_WORD else self.message


def wrong_setting(config: Mapping[str, Any], kinds: Mapping[str, Any], at: tuple[str, ...] = ()) -> WrongSetting | None:
    """Return the first key of a configuration with a value of a wrong type, or None."""
    for key in sorted(config.keys() & kinds.keys()):
        if config[key] is not None and (wrong := _wrong(config[key], kinds[key], (*at, key))) is not None:
            return wrong
    return None


def unknown_settings(config: Mapping[str, Any], kinds: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Return the sorted paths of the settings that forms.json does not have. A table with "open" can have any members."""
    found: list[tuple[str, ...]] = []
    for key, value in config.items():
        kind = kinds.get(key)
        if kind is None:
            found.append((key,))
        elif type(kind) is dict and type(value) is dict and "open" not in kind:
            members = dict.fromkeys(value, kind["map"]) if "map" in kind else kind["members"]
            found += [(key, *path) for path in unknown_settings(value, members)]
    return sorted(found)


def _wrong(value: Any, kind: Any, at: tuple[str, ...]) -> WrongSetting | None:
    if type(kind) is not dict:
        words = _no_word(value, kind) if type(kind) is list else wrong_value(value, kind, {})
        within = _wrong_entry(value) if words is not None and kind == "[string]" else ()
        return None if words is None else WrongSetting(words, at, (*at, *within))
    if "map" in kind:
        if type(value) is not dict:
            return WrongSetting(unlike(value, "a map"), at)
        inner = (_wrong(value[name], kind["map"], (*at, name)) for name in sorted(value))
        return next((wrong for wrong in inner if wrong is not None), None)
    if type(value) is not dict:
        return None if type(value) is list and "each" not in kind else WrongSetting(unlike(value, f"struct {kind['struct']}"), at)
    if "each" in kind:
        for name in sorted(value):
            if (words := wrong_value(value[name], kind["each"], {})) is not None:
                return WrongSetting(words, at, (*at, name))
        return None
    if (wrong := wrong_setting(value, kind["members"], at)) is not None:
        return wrong
    for name in kind.get("required", ()):
        if name not in value:
            return WrongSetting(f"missing field `{name}`", at)
    words = _no_transport(value) if kind["struct"] == "RawMcpServerConfig" else None
    return None if words is None else WrongSetting(words, at)


def _wrong_entry(value: Any) -> tuple[str, ...]:
    """Return the index of the first list entry that is not a string."""
    entries = enumerate(value) if type(value) is list else ()
    return next(((str(number),) for number, entry in entries if type(entry) is not str), ())


def _no_transport(server: Mapping[str, Any]) -> str | None:
    """Check the settings of an MCP server: a command or a URL, with the members that belong to it."""
    transport = "stdio" if "command" in server else "streamable_http" if "url" in server else None
    if transport is None:
        return "invalid transport"
    return next((f"{name} is not supported for {transport}" for name in _FOREIGN[transport] if name in server), None)


def _no_word(value: Any, words: Collection[str]) -> str | None:
    """Check a setting whose value must be one of a few words.

    In TOML, the value may also be a table whose only key is one of the words.
    """
    if type(value) is dict and len(value) == 1:
        (value,) = value
        return unlike(None, "unit") if value in words else f"unknown variant `{value}`, {one_of(words)}"
    if value == {}:
        return "wanted exactly 1 element, found 0 elements"
    if type(value) is not str:
        return _NO_WORD
    return None if value in words else f"unknown variant `{value}`, {one_of(words)}"
