"""The files of `codex-replay init`: appended and created, never overwritten."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
import yaml

from codex_replay.cli.init import first_run as first_run_module
from codex_replay.cli.init import workflow as page
from codex_replay.cli.init.command import _table
from codex_replay.cli.init.files import configuration_file, new_file, write
from codex_replay.cli.init.found import Found
from codex_replay.cli.init.workflow import PLACEHOLDER, repository, requirement, workflow
from codex_replay.cli.io.console import Unable
from codex_replay.plugin.base.configuration import Configuration, read
from codex_replay.plugin.base.option_table import KEYS

TABLE = '[tool.codex-replay.proxy.mine]\ncommand = "node server.js"\n'


def planned(folder: Path, role: str = "proxy", text: str = TABLE) -> Any:
    return configuration_file(folder, role, text, read(folder, KEYS))


@pytest.mark.parametrize(
    "old",
    [
        b"",
        b'[project]\nname = "x"  # a comment\n\n[tool.ruff]\nline-length = 99',
        b'[project]\r\nname = "x"\r\n',
        b"[tool.codex-replay]\nreport = 'out'\n",
        b"[tool.codex-replay.lite-client.mine]\ncommand = 'true'\n",
        "# Ünïcode\n".encode(),
    ],
    ids=["empty", "no-newline", "crlf", "own-table", "other-role", "unicode"],
)
def test_a_table_is_appended_and_all_else_stays_byte_for_byte(tmp_path: Path, old: bytes) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(old)
    before = read(tmp_path, KEYS).table
    file = planned(tmp_path)
    assert (file.path, file.action) == (path, "append")
    write(file)
    assert path.read_bytes().startswith(old)
    assert (b"\r\n" in old) is (b"\r\n[tool.codex-replay.proxy.mine]\r\n" in path.read_bytes())
    assert read(tmp_path, KEYS).table == {**before, "proxy": {"mine": {"command": "node server.js"}}}


@pytest.mark.parametrize("old", ["tool = { ruff = {} }\n", "[tool]\ncodex-replay = { report = 'out' }\n"])
def test_a_file_to_which_nothing_can_be_appended_is_left(tmp_path: Path, old: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(old)
    file = planned(tmp_path)
    assert (file.action, file.why) == ("keep", "the syntax of its tables does not allow init to append a table")
    write(file)
    assert path.read_text() == old


@pytest.mark.parametrize("old", ["[tool.codex-replay]\nproxy = 'node a.js'\n", TABLE.replace("mine", "other")])
def test_a_subject_that_is_configured_is_left(tmp_path: Path, old: str) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_text(old)
    file = planned(tmp_path)
    assert (file.action, file.why) == ("keep", "it has [tool.codex-replay] proxy already")
    write(file)
    assert path.read_text() == old


def test_without_a_pyproject_a_file_of_its_own_is_created_and_then_appended_to(tmp_path: Path) -> None:
    write(planned(tmp_path))
    assert (tmp_path / "codex-replay.toml").read_text() == TABLE
    second = planned(tmp_path, "lite-client", TABLE.replace("proxy", "lite-client"))
    assert second.action == "append"
    write(second)
    assert read(tmp_path, KEYS).table.keys() == {"proxy", "lite-client"}


def test_the_configuration_of_a_folder_above_is_not_this_ones(tmp_path: Path) -> None:
    own = Configuration(tmp_path / "pyproject.toml", {"proxy": {"mine": {}}})
    assert configuration_file(tmp_path / "below", "proxy", TABLE, own).path == tmp_path / "below" / "codex-replay.toml"


def test_what_exists_is_kept_even_if_it_came_in_between(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.yaml"
    file = new_file(path, "new\n")
    assert file.action == "create"
    write(file)
    assert path.read_text() == "new\n"
    with pytest.raises(Unable, match=r"Another program has just created .*b.yaml; init did not change it"):
        write(file)
    assert (new_file(path, "newer\n").why, new_file(path, "newer\n").text) == ("it exists", "newer\n")
    assert (new_file(path, "new\n").why, new_file(path, "new\n").text) == ("it has this content already", "")
    (tmp_path / "broken").symlink_to("nowhere")
    assert new_file(tmp_path / "broken", "x").action == "keep"


def test_a_pyproject_that_is_no_utf_8_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"# \xff\n")
    with pytest.raises(Unable, match=r"pyproject.toml is not encoded as UTF-8"):
        configuration_file(tmp_path, "proxy", TABLE, Configuration())


def test_what_a_subject_says_stays_in_its_comment() -> None:
    found = Found([], {"command": "x"}, lacks={"models": "no\n[tool.evil]\x1b[31m"})
    assert tomllib.loads(_table("proxy", "mine", found)) == {"tool": {"codex-replay": {"proxy": {"mine": {"command": "x"}}}}}


# -- the workflow ----------------------------------------------------------------------------------------------------------


def steps(folder: Path, package: str = "codex-replay==0.1.0") -> tuple[dict[str, Any], list[str]]:
    text = workflow(folder, "codex-replay.toml", package, package == PLACEHOLDER)
    (job,) = yaml.safe_load(text)["jobs"].values()
    return job, [step.get("run") or step["uses"] for step in job["steps"]]


def test_a_bare_project_gets_the_gate_and_its_report(tmp_path: Path) -> None:
    _, found = steps(tmp_path)
    assert found[2:4] == ["python -m pip install codex-replay==0.1.0", "codex-replay run --report codex-replay-report"]
    assert found[-1].startswith("actions/upload-artifact@")
    assert "# Install or build here" in workflow(tmp_path, "x.toml", "y", False)


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({"package.json": "{}"}, ["actions/setup-node@v4", "npm install"]),
        ({"package.json": "{}", "package-lock.json": "{}"}, ["actions/setup-node@v4", "npm ci"]),
        ({"go.mod": ""}, ["actions/setup-go@v5"]),
        ({"requirements.txt": ""}, ["python -m pip install -r requirements.txt"]),
        ({"pyproject.toml": "[project]\nname = 'x'\n"}, ["python -m pip install ."]),
        ({"pyproject.toml": "[tool.ruff]\n"}, []),
    ],
)
def test_what_the_project_needs_is_installed_first(tmp_path: Path, files: dict[str, str], runs: list[str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    _, found = steps(tmp_path)
    assert found[2:-4] == runs


def test_a_project_below_the_repository_runs_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    below = tmp_path / "my proxy"
    below.mkdir()
    assert repository(below) == tmp_path
    job, _ = steps(below)
    assert job["defaults"]["run"]["working-directory"] == "my proxy"
    assert job["steps"][-1]["with"]["path"] == "my proxy/codex-replay-report"


def test_a_repository_is_not_looked_for_where_there_is_none(tmp_path: Path) -> None:
    assert repository(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("direct", "expected"),
    [
        (None, ("codex-replay==9.9", False)),
        (
            {"url": "https://git.example/x", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            ("codex-replay @ git+https://git.example/x@abc", False),
        ),
        ({"url": "file:///home/me/x", "vcs_info": {"vcs": "git", "commit_id": "abc"}}, (PLACEHOLDER, True)),
        ({"url": "file:///home/me/x", "dir_info": {"editable": True}}, (PLACEHOLDER, True)),
    ],
)
def test_the_workflow_installs_what_is_installed_here(
    direct: dict[str, Any] | None, expected: tuple[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Installed:
        version = "9.9"

        def read_text(self, name: str) -> str | None:
            return json.dumps(direct) if direct and name == "direct_url.json" else None

    monkeypatch.setattr(page, "distribution", lambda name: Installed())
    assert requirement() == expected


def test_a_codex_replay_that_is_not_installed_leaves_a_placeholder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(page, "distribution", missing)
    assert requirement() == (PLACEHOLDER, True)
    assert "# A placeholder: replace it by the source of codex-replay, such as a git URL" in workflow(
        tmp_path, "x", PLACEHOLDER, True
    )
    _, found = steps(tmp_path, PLACEHOLDER)
    assert found[2] == f'python -m pip install "{PLACEHOLDER}"'


def test_a_first_run_that_ends_with_an_internal_error_keeps_pytest_s_whole_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = f"INTERNALERROR> first line\nkey={'sk-' + 'proj-' + 'a1B2' * 10}\nINTERNALERROR> KeyError: 'x'\n".encode()
    monkeypatch.setattr(first_run_module, "_run", lambda words, suite: (3, printed))
    report = tmp_path / "reports" / "mine"
    with pytest.raises(Unable) as raised:
        first_run_module.first_run("proxy", TABLE, "codex-replay.toml", None, report)
    first, second = raised.value.message.splitlines()
    assert first == "The suite proxy could not run (status 3): INTERNALERROR> KeyError: 'x'"
    assert second == f"The whole output of pytest is in {report / 'pytest.txt'}."
    assert (report / "pytest.txt").read_text().splitlines() == [
        "INTERNALERROR> first line", "key=sk-redacted-1", "INTERNALERROR> KeyError: 'x'"
    ]  # fmt: skip
