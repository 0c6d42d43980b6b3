"""Build the shell command that reruns one case alone, with the same program under test and the same options."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.core.text.substitute import substitute
from codex_replay.plugin.base.option_table import KEYS
from codex_replay.plugin.base.places import PACKAGED, SUITES_PLUGIN, installed_suites, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pytest

#: Options about a run and not about a case: a baseline would complain of its other lines, a recording would be made again.
_OF_A_RUN = ("record", "report", "baseline")
#: pytest's own options that decide what a test is and how it is imported: destination, flag, and default.
_PYTEST: tuple[tuple[str, str, Any], ...] = (
    ("inifilename", "-c", None),
    ("rootdir", "--rootdir", None),
    ("confcutdir", "--confcutdir", None),
    ("importmode", "--import-mode", "prepend"),
)

#: What `codex-replay run` adds for the way in which it shows a run.
_SHOWN = ("-q", "--color=yes")

#: Stands for the user's home while a command is made.
_HOME = "\ue000"


class RerunCommand:
    """Build the rerun commands of one run, relative to the folder in which the run was started."""

    def __init__(self, config: pytest.Config, report: Path) -> None:
        """`report` is the report folder of the run; a rerun must write its report to another folder."""
        self._config, self._report, self._own = config, report, _own(config)
        self._root = config.rootpath
        self._given = config.invocation_params.args
        self._here = Path(config.invocation_params.dir)
        of_pytest = _pytest(config)
        # What `codex-replay run` gives to installed suites names folders of this machine, and it gives that again by itself.
        self._by_name = of_pytest[::2] == ["-c", "--rootdir"] and config.inipath == PACKAGED
        if self._by_name:
            of_pytest = ["-n", "1"]
        self._options = [*self._own, "--report", self._relative(report / "again"), *of_pytest]
        self._places: dict[str, str] = {}
        self._ends: dict[Callable[[Iterable[str]], list[str]], str] = {}

    def arguments(self, nodeid: str) -> list[str]:
        """Return the command that reruns one case, as a list of words."""
        return [*self._begun(nodeid), *self._options]

    def in_process(self, nodeids: Iterable[str], workers: int) -> list[str]:
        """Return the pytest arguments that run the cases `nodeids` in `workers` processes; 0 means: in one process."""
        places = [str(place_of(path, self._root)) + colons + rest for path, colons, rest in (n.partition("::") for n in nodeids)]
        alone = ["--no-early-stop", *(["-n", str(workers)] if self._config.pluginmanager.has_plugin("xdist") else [])]
        return [*places, *self._own, *_pytest(self._config), *alone, "--report", str(self._report)]

    def whole(self) -> list[str]:
        """Return the command that reruns the whole run, as a list of words."""
        given = [str(word) for word in self._given]
        if not self._by_name:
            return ["pytest", *given]
        words = []
        for i, word in enumerate(given):
            if word in _SHOWN or word in ("-c", "--rootdir") or given[i - 1 : i] in (["-c"], ["--rootdir"]):
                continue
            path, colons, rest = word.partition("::")
            place = Path(path)
            if place.is_absolute() and place.is_relative_to(installed_suites()):
                word = place.relative_to(installed_suites()).as_posix() + colons + rest
            if word != ".":  # all of them, which is what no name means
                words.append(word)
        return ["codex-replay", "run", *words]

    def line(self, nodeid: str, redact: Callable[[Iterable[str]], list[str]]) -> str:
        """Return the command that reruns one case as a shell line; the part that is equal for all cases is built only once."""
        begun = shell_line(self._begun(nodeid), redact)
        end = self._ends.get(redact)
        if end is None:
            end = self._ends[redact] = shell_line(self._options, redact)
        return f"{begun} {end}"

    def _begun(self, nodeid: str) -> list[str]:
        path, colons, rest = nodeid.partition("::")
        if self._by_name:
            return ["codex-replay", "run", path.removeprefix("suites/") + colons + rest]
        place = self._places.get(path)
        if place is None:
            place = self._places[path] = self._relative(place_of(path, self._root))
        return ["pytest", place + colons + rest]

    def _relative(self, path: Path) -> str:
        found = os.path.relpath(path, self._here)
        return str(path) if found.startswith(os.path.join("..", "..", "..")) else found


#: Flags that a rerun of the same cases needs as well.
_OF_SUBJECTS = ("backend-cost-ok", "backend-websocket", "lite-websocket")


def _own(config: pytest.Config) -> list[str]:
    words = []
    for key in KEYS:
        given = None if key in _OF_A_RUN else config.getoption("codex_replay_" + key.replace("-", "_"), None)
        if given is not None:
            words += [f"--{key}", str(given)]
    if config.getoption("backend_auth", None):
        words += ["--backend-auth", str(config.getoption("backend_auth"))]
    words += [f"--{flag}" for flag in _OF_SUBJECTS if config.getoption(flag.replace("-", "_"), False)]
    return words


def _pytest(config: pytest.Config) -> list[str]:
    """Return the options of pytest itself that were given on the command line of the run, such as `-k`.

    Options in a configuration file are omitted, because the rerun reads the same configuration file.
    """
    given_words = [str(word) for word in config.invocation_params.args]
    words = []
    for name, flag, usual in _PYTEST:
        given = getattr(config.option, name, usual)
        if given and given != usual and any(str(given) in word for word in given_words):
            words += [flag, str(given)]
    for flag, values in (("-p", getattr(config.option, "plugins", None)), ("-o", getattr(config.option, "override_ini", None))):
        for value in dict.fromkeys(values or ()):
            ours = value == SUITES_PLUGIN and value not in config.getini("addopts")
            if ours or (value != SUITES_PLUGIN and any(str(value) in word for word in given_words)):
                words += [flag, str(value)]
    return words


def shell_line(words: Iterable[str], redact: Callable[[Iterable[str]], list[str]]) -> str:
    """Return a command as a shell line without secrets; the user's home folder becomes $HOME, so that the command still works."""
    home = os.path.expanduser("~")
    return " ".join(_quoted(word) for word in redact(_without_home(word, home) for word in words))


def _without_home(word: str, home: str) -> str:
    able = len(home) > 1 and home in word and not any(c in word for c in '"\\$`!\n')
    return substitute(word, lambda _: _HOME, [home.rstrip("/")]) if able else word


def _quoted(word: str) -> str:
    return '"' + word.replace(_HOME, "$HOME") + '"' if _HOME in word else shlex.quote(word)
