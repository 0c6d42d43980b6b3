"""Write the workflow for GitHub Actions for `codex-replay init`.

The workflow for GitHub Actions installs the dependencies of the project, and runs the suites.
"""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

NAME = Path(".github") / "workflows" / "codex-replay.yml"
#: Stands for where codex-replay is installed from, if this installation does not show it.
PLACEHOLDER = "codex-replay @ git+https://example.com/OWNER/codex-replay@v0.1.0"
_HEAD = """\
# Written by `codex-replay init`: the configuration of the project ({configuration}) names the suites and the subjects.
name: codex-replay
on: [push, pull_request]
permissions:
  contents: read

jobs:
  codex-replay:
    runs-on: ubuntu-latest
"""
_FOLDER = """\
    defaults:
      run:
        working-directory: {folder}
"""
_BEGIN = """\
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: { python-version: "3.12" }
"""
_NODE = """\
      - uses: actions/setup-node@v4
        with: {{ node-version: 22 }}
      - run: npm {install}
"""
_GO = """\
      - uses: actions/setup-go@v5
        with: { go-version: stable }
"""
_END = """\
{placeholder}      - run: python -m pip install {package}
      - run: codex-replay run --report codex-replay-report
      - if: always()
        run: cat codex-replay-report/summary.md codex-replay-report/*/summary.md >> "$GITHUB_STEP_SUMMARY" 2>/dev/null || true
      - uses: actions/upload-artifact@v4
        if: always()
        with: {{ name: codex-replay-report, path: {report}, if-no-files-found: ignore }}
"""


def repository(folder: Path) -> Path:
    """Return the root folder of the git repository that contains `folder`, because GitHub reads workflows only there.

    Without a repository, return `folder`.
    """
    return next((each for each in (folder, *folder.parents) if (each / ".git").exists()), folder)


def requirement() -> tuple[str, bool]:
    """Return the argument for `pip install` that installs this codex-replay, and True if the user must replace it.

    Source: direct_url.json of the installation (PEP 610). For an installation from a checkout or a file there is no URL, so the
    result is a placeholder.
    """
    try:
        installed = distribution("codex-replay")
        text = installed.read_text("direct_url.json")
        if text is None:
            return f"codex-replay=={installed.version}", False
        direct = json.loads(text)
        commit, url = direct["vcs_info"]["commit_id"], direct["url"]
    except (PackageNotFoundError, ValueError, KeyError, TypeError):
        return PLACEHOLDER, True
    return (PLACEHOLDER, True) if url.startswith("file:") else (f"codex-replay @ git+{url}@{commit}", False)


def workflow(folder: Path, configuration: str, package: str, placeholder: bool) -> str:
    """Return the text of the CI workflow for the project in `folder`; the files of the project decide which tools it installs."""
    root = repository(folder)
    below = folder.relative_to(root).as_posix()
    text = _HEAD.format(configuration=configuration)
    text += _FOLDER.format(folder=_quoted(below)) if below != "." else ""
    text += _BEGIN
    if (folder / "package.json").is_file():
        locked = (folder / "package-lock.json").is_file()
        text += _NODE.format(install="ci" if locked else "install")
    if (folder / "go.mod").is_file():
        text += _GO
    if (folder / "requirements.txt").is_file():
        text += "      - run: python -m pip install -r requirements.txt\n"
    elif _is_package(folder / "pyproject.toml"):
        text += "      - run: python -m pip install .\n"
    if text.endswith(_BEGIN):
        text += "      # Install or build here everything that the configured command needs.\n"
    note = "      # A placeholder: replace it by the source of codex-replay, such as a git URL or your own package.\n"
    report = "codex-replay-report" if below == "." else f"{below}/codex-replay-report"
    return text + _END.format(package=_quoted(package), placeholder=note if placeholder else "", report=_quoted(report))


def _is_package(path: Path) -> bool:
    try:
        return "project" in tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False


def _quoted(text: str) -> str:
    """Return a value in quotes, so that both YAML and a shell read the value as one word."""
    plain = all(sign.isalnum() or sign in "-_./=" for sign in text)
    return text if plain else json.dumps(text)
