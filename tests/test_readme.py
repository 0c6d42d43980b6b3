"""The README is true: its links lead somewhere, and its demonstration says what the commands really say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text()
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SESSIONS = [
    (command, output)
    for block in re.findall(r"```\n(\$ .*?)```", TEXT, re.DOTALL)
    for command, output in [("\n".join(re.findall(r"^\$ (.*)$", block, re.M)), re.sub(r"^\$ .*\n", "", block, flags=re.M))]
]
OFFLINE = [session for session in SESSIONS if "codex install" not in session[0]]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text())
    assert [link for link in links if not (path.parent / link).exists()] == []


@pytest.mark.parametrize(("commands", "output"), OFFLINE, ids=[str(n) for n in range(len(OFFLINE))])
def test_the_demonstration_says_what_the_commands_say(commands: str, output: str) -> None:
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/")}
    done = subprocess.run(["sh", "-c", commands], cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert _timeless(done.stdout) == _timeless(output)


def _timeless(text: str) -> list[str]:
    """Recording again changes the times and the frame numbers at a race, and stderr may overtake stdout."""
    return sorted(re.sub(r"^\s*\d+\s+\d+\.\d+ ", "", re.sub(r"frame \d+", "frame N", line)) for line in text.strip().splitlines())


def test_there_is_something_to_try() -> None:
    assert len(SESSIONS) == 4
    assert len(OFFLINE) == 2
