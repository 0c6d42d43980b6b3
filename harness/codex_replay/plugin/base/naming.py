"""Find the name of a test in cassettes and reports, the paths of its cassettes, and the role of the program under test."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from codex_replay.protocol.versions import DEFAULT, is_version
from codex_replay.shell.files import version_data
from codex_replay.shell.files.archive import packed

if TYPE_CHECKING:
    import pytest

#: The fixtures that make a test a case in any folder, and the role of their subject.
ROLE_OF_FIXTURE = {
    "proxy": "proxy",
    "backend": "backend",
    "lite_client": "lite-client",
    "editor_client": "editor-client",
    "codex_backend": "backend",
    "fake_codex": "app-server",
    "app_server": "app-server",
}

#: Only with a long word that has a digit, or with signs of a command, an address or markup, an id may hold a secret.
_MAY_HOLD_SECRET = re.compile(r"[^\w.,/+-]|(?=[\w.-]{0,256}[0-9])[\w.-]{20}")


@dataclass(frozen=True, slots=True)
class CaseName:
    """The name of a case, `suite/module/case`, as in the path of its cassette."""

    suite: str
    module: str
    case: str

    def __str__(self) -> str:
        return f"{self.suite}/{self.module}/{self.case}"

    def path(self, folder: Path, number: int) -> Path:
        """Return the path of a cassette in `folder`; `number` counts the servers of the case, from 1."""
        ending = "" if number == 1 else f".{number}"
        return folder / self.suite / self.module / f"{self.case}{ending}.ndjson"


def case_name(item: Any, root: Path) -> CaseName:
    """Return the `CaseName` of a test function: its suite, its module and its name.

    The suite is a folder in `suites`, or in the root folder.
    """
    path: Path = item.path
    case = getattr(item, "originalname", item.name).removeprefix("test_")
    callspec = getattr(item, "callspec", None)
    if callspec is not None and callspec.id:  # the id of a hidden parameter is empty
        plain, hidden = _plain_id(callspec.id)
        case += "-" + plain
        if hidden:  # two secrets may have had the only difference of two ids
            case += "".join(f"-{index}" for index in callspec.indices.values())
    return CaseName(_suite(path, root), path.stem, case)


def check_names(item: pytest.Item) -> list[str]:
    """Return the names of the check of a case, without and with its parameters; return no name for a case without a check."""
    found = []
    mark = item.get_closest_marker("spec")
    callspec = getattr(item, "callspec", None)
    if mark is not None:
        found.append(mark.args[0])
        if callspec is not None and callspec.id:
            found.append(f"{mark.args[0]}[{callspec.id}]")
    return found


def name_of_node(nodeid: str, root: Path) -> CaseName:
    """Return the `CaseName` of the test with a node id; use `name_of_node` if the test object no longer exists."""
    place, _, rest = nodeid.partition("::")
    path = root / place
    test, bracket, parameters = rest.rpartition("::")[2].partition("[")
    case = test.removeprefix("test_") + bracket.replace("[", "-")
    case += _plain_id(parameters.removesuffix("]"))[0]
    return CaseName(_suite(path, root), path.stem, case)


def _plain_id(parameters: str) -> tuple[str, bool]:
    """Return a parameter id as part of a file name, without secrets; also return True if the id contained a secret.

    Secrets are removed before characters are replaced, because the redactor recognises most secrets by the characters around
    them.
    """
    text = parameters
    if _MAY_HOLD_SECRET.search(parameters):
        from codex_replay.core.redact.redactor import Redactor  # few ids need it

        text = Redactor(homes=False).text(parameters)
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text), text != parameters


def role_of(item: pytest.Item) -> str | None:
    """Return the role of the program that a test uses through a fixture of codex-replay; None if the test uses no such fixture.

    A fixture of the user that has the name of a codex-replay fixture gives a test no role.
    """
    known = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    for name, role in ROLE_OF_FIXTURE.items():
        if name in known and str(getattr(known[name][-1].func, "__module__", "")).startswith("codex_replay.plugin."):
            return role
    return None


def _suite(path: Path, root: Path) -> str:
    """Return the suite of a module.

    Subfolders are not part of the suite's name, so a case keeps its name if it moves to another subfolder.
    """
    if below := below_suites(path):
        return below[0]
    folders = path.parent.relative_to(root).parts if path.is_relative_to(root) else path.parts[-2:-1]
    return "/".join(folders) or "tests"


def below_suites(path: Path) -> tuple[str, ...]:
    """Return the names of the folders between `suites` and the module; empty for a module outside `suites`."""
    parts = path.parts[:-1]
    return parts[len(parts) - parts[::-1].index("suites") :] if "suites" in parts else ()


def cassette_folder(path: Path, root: Path, version: str = DEFAULT) -> Path:
    """Return the folder with the cassettes of the suite at `path`: the folder `cassettes` next to `suites`, otherwise in the root
    folder.

    In an installed wheel, the folder `cassettes` is an archive. For a `version` other than the default, return the cassette
    folder in the data folder of that version.
    """
    for parent in path.parents:
        if parent.name == "suites":
            other = is_version(version) and version != DEFAULT
            return Path(version_data.folder(f"{version}/cassettes") if other else packed(str(parent.parent / "cassettes")))
    return root / "cassettes"


def read_only(cassettes: Path) -> bool:
    """Return True if cases must not record into the folder `cassettes`: an archive, or the folder of a version that `codex
    add` made.
    """
    return cassettes.is_file() or cassettes.is_relative_to(version_data.added_folder())
