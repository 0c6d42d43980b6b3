"""Put files, a skill or a git repository into the folders of an app-server before it starts."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SKILL = "---\nname: whistle\ndescription: Whistles a tune.\n---\nWhistle.\n"


def with_skills(root: Path) -> None:
    """Create a valid skill and a broken skill of the user in the home directory."""
    for name, words in (("whistle", SKILL), ("broken", "no front matter\n")):
        folder = root / "home" / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(words)


def with_files(root: Path) -> None:
    """Put a few files into the working directory."""
    for name in ("alpha.txt", "beta.txt", "deep/alphabet.md"):
        path = root / "work" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)


def with_repository(root: Path) -> None:
    """Make the working directory a git repository with one commit on its remote and one uncommitted change."""
    env = {"PATH": os.environ["PATH"], "HOME": str(root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    env |= {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in IDENTITY.items()}

    def git(*words: str) -> None:
        subprocess.run(["git", *words], cwd=root / "work", env=env, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    (root / "work" / "a.txt").write_text("one\n")
    git("add", ".")
    git("commit", "-q", "-m", "First")
    git("clone", "-q", "--bare", ".", str(root / "home" / "remote.git"))
    git("remote", "add", "origin", str(root / "home" / "remote.git"))
    git("fetch", "-q", "origin")
    git("branch", "-q", "-u", "origin/main")
    (root / "work" / "a.txt").write_text("two\n")


IDENTITY = {"NAME": "Nobody", "EMAIL": "nobody@example.invalid", "DATE": "2026-01-01T00:00:00Z"}
#: The hash of the commit, which depends on its content, author and date only.
COMMIT = "3cf6436bdd80005afd826c34f2bd720ff3fb83a2"
