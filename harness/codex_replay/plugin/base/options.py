"""The values of the plugin's options: from the command line, from the table `[tool.codex-replay]`, or the default."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from codex_replay.core.text.error_text import error_text
from codex_replay.core.text.numbers import parse_seconds, whole_number
from codex_replay.plugin.base.configuration import FILES, SUITE_OF, Configuration, read
from codex_replay.plugin.base.option_table import KEYS, OTHERS, PROFILES, RECORD_MODES
from codex_replay.plugin.base.subjects import usage_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codex_replay.plugin.base.folder_lock import FolderLock

#: The options' group in `pytest --help`.
GROUP = "codex-replay"


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of one run; `wait` is in seconds."""

    app_server: str
    lite_client: str
    editor_client: str
    proxy: str | None
    baseline: Path | None
    backend: str | None
    record: str
    profile: str
    report: Path | None
    cassettes: Path | None
    validate: bool
    clients: int | None
    wait: float | None

    @property
    def others(self) -> dict[str, str]:
        """The programs under test by role, without the app-server."""
        return {
            "backend": self.backend or "fake",
            "lite-client": self.lite_client,
            "editor-client": self.editor_client,
            "proxy": self.proxy or "reference",
        }


def option_names() -> list[str]:
    """Return the names of the suites' options, such as "--proxy"."""
    return [f"--{key}" for key in (*KEYS, *OTHERS)]


def add_options(parser: pytest.Parser) -> None:
    """Declare the command line options of the suites."""
    group = parser.getgroup(GROUP, "record, replay and verify the Codex protocols")
    for key, (_, metavar, text) in KEYS.items():
        group.addoption(f"--{key}", dest=_dest(key), default=None, metavar=metavar, help=text)
    for key, (metavar, text) in OTHERS.items():
        group.addoption(f"--{key}", help=text, **({"metavar": metavar} if metavar else {"action": "store_true"}))


_CONFIGURATION: pytest.StashKey[Configuration] = pytest.StashKey()
_SETTINGS: pytest.StashKey[Settings] = pytest.StashKey()


def settings_of(config: pytest.Config) -> Settings:
    """Return the settings of a run, and remember them; raises `pytest.UsageError` if an option is invalid."""
    return config.stash[_SETTINGS] if _SETTINGS in config.stash else read_settings(config)


def table_name(config: pytest.Config, role: str) -> str:
    """Return the name of the configuration table of the program under test in a role; return "" if there is no such table."""
    rows = configuration_of(config).subjects(role) if role in SUITE_OF else {}
    given = config.getoption(_dest(role), None) if role in SUITE_OF else None
    if given is None:
        return next(iter(rows)) if len(rows) == 1 else ""
    return str(given) if given in rows else ""


def read_settings(config: pytest.Config) -> Settings:
    """Read the settings of a run, and read them again if the options were changed.

    Raises `pytest.UsageError` if an option is invalid.
    """
    own = configuration_of(config)
    table = {key: value for key, value in own.table.items() if not isinstance(value, dict)}  # no subjects by name
    values: dict[str, Any] = {}
    for key, (default, _, _) in KEYS.items():
        given = config.getoption(_dest(key), None)
        values[key.replace("-", "_")] = table.get(key, default) if given is None else given
    with usage_errors():
        for role in SUITE_OF:
            if role != "proxy" and own.subjects(role):  # a proxy is more than its command
                given = config.getoption(_dest(role), None)
                values[role.replace("-", "_")] = own.command(role, given, KEYS[role][0])
    if values["record"] not in RECORD_MODES:
        raise pytest.UsageError(f"--record {values['record']}: the modes are {', '.join(RECORD_MODES)}.")
    near = difflib.get_close_matches(str(values["profile"]), PROFILES, 1, 0.8)
    if near and near[0] != values["profile"]:
        raise pytest.UsageError(
            f"--profile {values['profile']}: did you mean {near[0]!r}? The profiles are {', '.join(PROFILES)}."
        )
    if values["validate"] not in ("yes", "no"):
        raise pytest.UsageError(f"--validate {values['validate']}: use yes or no.")
    values["validate"] = values["validate"] == "yes"
    if values["wait"] is not None:
        try:
            values["wait"] = parse_seconds(values["wait"])
        except ValueError as error:
            raise pytest.UsageError(f"--wait {values['wait']}: {error}") from None
    if values["clients"] is not None:
        clients = whole_number(str(values["clients"]))
        if not clients:
            raise pytest.UsageError(f"--clients {values['clients']}: give a number, 1 or more.")
        values["clients"] = clients
    for key in ("report", "cassettes", "baseline"):
        if values[key] is not None:
            given = config.getoption(_dest(key), None) is not None
            values[key] = (config.invocation_params.dir if given or own.path is None else own.path.parent) / values[key]
    if values["cassettes"] is not None and values["record"] == "none" and not values["cassettes"].is_dir():
        raise pytest.UsageError(f"--cassettes {values['cassettes']}: there is no such folder; --record all creates it.")
    settings = config.stash[_SETTINGS] = Settings(**values)
    return settings


def check_report(folder: Path) -> FolderLock:
    """Lock the folder in which the run will write its report.

    Raises `pytest.UsageError` before the run if the folder is not writable, or if another run has locked the folder.
    """
    from codex_replay.plugin.base.folder_lock import lock_folder

    try:
        held = lock_folder(folder)
        if held is not None:
            return held
    except FileExistsError:
        raise pytest.UsageError(f"--report {folder}: no report can be written there (it is not a folder).") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error_text(error)
        raise pytest.UsageError(f"--report {folder}: no report can be written there ({why}).") from None
    raise pytest.UsageError(
        f"--report {folder}: another run writes its report there; wait until it ends, or name another folder."
    )


def check_profile(config: pytest.Config, items: list[pytest.Item], profile: str) -> str:
    """Return an error message if the profile is unknown (neither built in nor named by a marker of a case); otherwise return "".

    A selected case may have no profile marker although another case of the same module has one. Therefore, the markers of
    all cases of the module are searched.
    """
    if profile in PROFILES or not items:
        return ""
    modules = {module for item in items if (module := item.getparent(pytest.Module)) is not None}
    marks = [*(mark for item in items for mark in item.iter_markers()), *(mark for each in modules for mark in _marks(each.obj))]
    named = {name for mark in marks if mark.name in ("profile", "proxy_profile") for name in mark.args}
    if profile in named:
        return ""
    known = ", ".join([*PROFILES, *sorted(named - {*PROFILES})])
    return f"--profile {profile}: there is no such profile. The profiles are {known}."


def _marks(holder: object) -> Iterator[pytest.Mark]:
    """Yield all markers in a module or class: its own, those of its tests and classes, and those of `pytest.param` values.

    Tests that are not selected are included.
    """
    own: Any = getattr(holder, "pytestmark", [])
    for one in own if isinstance(own, list) else [own]:
        mark = one.mark if isinstance(one, pytest.MarkDecorator) else one
        yield mark
        if mark.name == "parametrize":
            for values in mark.args[1]:
                yield from (getattr(inner, "mark", inner) for inner in getattr(values, "marks", ()))
    if isinstance(holder, type | ModuleType):
        for inner in vars(holder).values():
            if isinstance(inner, type | FunctionType):
                yield from _marks(inner)


def configuration_of(config: pytest.Config) -> Configuration:
    """Return the configuration of the project that a run belongs to, and remember it.

    Raises `pytest.UsageError` if it is invalid.
    """
    if _CONFIGURATION not in config.stash:
        ini = config.inipath
        first = ini.parent if ini is not None and ini.name == FILES[0] else config.rootpath
        with usage_errors():
            found = read(first, KEYS)
            if found.path is None and config.invocation_params.dir != first:
                found = read(config.invocation_params.dir, KEYS)
        config.stash[_CONFIGURATION] = found
    return config.stash[_CONFIGURATION]


def _dest(key: str) -> str:
    return "codex_replay_" + key.replace("-", "_")
