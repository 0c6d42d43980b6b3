"""Reads the commands in Markdown documents, runs them, and compares what they print with what the document says.

A fenced block of language `console` is a session: `$ command` (continued on lines that begin with `> `), then what it prints;
`…` stands for any text within a line, and alone for any lines. Nothing shown means that anything may be printed. A command must
succeed, unless it ends in `# exit status N`. The sessions of one document run in one shell, in order, in a copy of the checkout
(or in an empty folder), with a `codex` on PATH that is fake-codex. Comments before a block, or at the head of a document, say
what is different:

    <!-- folder: empty -->              the document's commands start in an empty folder
    <!-- file: NAME -->                 the block is the content of a file, for the commands after it
    <!-- run: real -->                  it needs the real Codex
    <!-- run: collect (REASON) -->      pytest only collects the cases: every path and option is tried, no case is run
    <!-- run: no (REASON) -->           it cannot be run here

Times, ports, process ids and frame numbers are not compared, as they differ from run to run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
#: A block must say what it is: a session, or data in one of these languages.
DATA = ("python", "json", "yaml", "toml", "text", "ndjson", "lua", "javascript", "ini", "diff")
#: Seconds for all the commands of one document.
PATIENCE = 300
#: Tenths of a second in which what the commands have left running must end; a document that leaves nothing does not wait.
LINGER = 600
MARK = "\x1e"
_FENCE = re.compile(r"((?:^<!-- .*? -->\n)*)^```([\w-]*)\n(.*?)^```$", re.M | re.S)
_COMMENT = re.compile(r"^<!-- (\w+): (.*?) -->$", re.M)
_STATUS = re.compile(r"#.*?\bexit status (\d+)\b")


@dataclass(frozen=True)
class Command:
    """One command of a session, what the document shows of its output (None: nothing), and its exit status."""

    text: str
    shown: list[str] | None
    status: int


@dataclass(frozen=True)
class Block:
    """One fenced block: where it begins, what it is, and what the comments before it say."""

    line: int
    language: str
    text: str
    notes: dict[str, str]

    @property
    def how(self) -> str:
        """How it is run: yes, real, collect or no."""
        return self.notes.get("run", "yes").split()[0]

    @property
    def reason(self) -> str:
        """Why it is not run as it stands; empty if no reason is given."""
        return self.notes.get("run", "").partition(" ")[2].strip("() ")

    def commands(self) -> list[Command]:
        """Return the commands of a session."""
        found: list[Command] = []
        lines = self.text.splitlines()
        while lines:
            text = lines.pop(0).removeprefix("$ ")
            while lines and lines[0].startswith("> "):
                text += "\n" + lines.pop(0).removeprefix("> ")
            shown = []
            while lines and not lines[0].startswith("$ "):
                shown.append(lines.pop(0))
            while shown and not shown[-1].strip():
                shown.pop()
            status = _STATUS.search(text)
            found.append(Command(text, shown or None, int(status[1]) if status else 0))
        return found


@dataclass
class Document:
    """A Markdown document and its blocks."""

    name: str
    text: str
    blocks: list[Block] = field(init=False)

    def __post_init__(self) -> None:
        self.blocks = [
            Block(self.text.count("\n", 0, found.start(2)) + 1, found[2], found[3], dict(_COMMENT.findall(found[1])))
            for found in _FENCE.finditer(self.text)
        ]

    @classmethod
    def read(cls, path: Path) -> Document:
        """Read a document below the checkout."""
        return cls(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))

    @property
    def empty_folder(self) -> bool:
        """Whether its commands start in an empty folder rather than in the checkout."""
        return "<!-- folder: empty -->" in self.text

    def sessions(self, *how: str) -> list[Block]:
        """Return the console blocks that are run in one of these ways."""
        return [block for block in self.blocks if block.language == "console" and block.how in how]

    def wrong(self) -> list[str]:
        """Return what is wrong with the blocks as they stand, a sentence each."""
        said = []
        for block in self.blocks:
            where = f"{self.name}, line {block.line}"
            if block.language != "console" and block.language not in DATA:
                said.append(f"{where}: a block of language {block.language!r}; say console, or one of {', '.join(DATA)}.")
            if block.language == "console" and not block.text.startswith("$ "):
                said.append(f"{where}: a session begins with `$ `.")
            if block.how not in ("yes", "real", "collect", "no"):
                said.append(f"{where}: `run: {block.how}` is not known.")
            if block.how in ("collect", "no") and len(block.reason.split()) < 3:
                said.append(f"{where}: a block that is not run as it stands needs a reason.")
            if (problem := _malformed(block)) is not None:
                said.append(f"{where}: {problem}.")
        outside = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), self.text)
        if "```" in outside:
            said.append(f"{self.name}: a fence that is indented or not closed.")
        for number, line in enumerate(outside.splitlines(), 1):
            if re.match(r"(    |\t)\s*(\$ )?(pytest|codex-replay|fake-codex|make|python|pip) ", line):
                said.append(f"{self.name}, line {number}: a command in an indented block, where nobody runs it.")
        return said


def _malformed(block: Block) -> str | None:
    """Say why a block of data is not what its language says; one with an ellipsis is only an excerpt."""
    try:
        if block.language == "python":
            compile(block.text, "a block", "exec")
        elif block.language == "json" and "..." not in block.text and "…" not in block.text:
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "yaml":
            import yaml

            yaml.safe_load(block.text)
    except (ValueError, SyntaxError) as error:
        return f"it is no {block.language}: {error}"
    except Exception as error:
        if type(error).__module__.startswith("yaml"):
            return f"it is no YAML: {error}"
        raise
    return None


def sandbox(folder: Path, empty: bool, script: str = "") -> Path:
    """Make the folder that a script starts in, and return it: empty, or a copy of the checkout.

    Folders that the script does not name, and so does not write to, are links.
    """
    place = folder / "work"
    place.mkdir()
    if empty:
        return place
    ignored = shutil.ignore_patterns(
        ".git", ".venv*", ".*_cache", ".hypothesis", "node_modules", "build", "dist", "reports", "*.egg-info"
    )
    for name in {entry.name for entry in ROOT.iterdir()} - ignored(str(ROOT), os.listdir(ROOT)):
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, place)
        elif f"{name}/" in script or "--record" in script:
            # with its bytecode, which pytest would have to write again
            shutil.copytree(ROOT / name, place / name, symlinks=True)
        else:
            (place / name).symlink_to(ROOT / name)
    return place


def environment(folder: Path, snapshots: bool = False) -> dict[str, str]:
    """Return the environment of the commands: the venv's programs first, a home of their own, the cache of real binaries."""
    from codex_replay.shell.codex.cache import cache_folder
    from tests.support.suite_run import ONE_PROCESS  # not there for `make docs`, which runs this file as a program

    programs = folder / "bin"
    programs.mkdir()
    (programs / "codex").symlink_to(BIN / "fake-codex")
    (folder / "home").mkdir()
    return {
        "PATH": os.pathsep.join([str(programs), str(BIN), os.environ["PATH"]]),
        "HOME": str(folder / "home"),
        "CODEX_REPLAY_CACHE": str(cache_folder()),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        **ONE_PROCESS,
        "PYTEST_ADDOPTS": ONE_PROCESS["PYTEST_ADDOPTS"].replace("-p no:syrupy", "" if snapshots else "-p no:syrupy"),
    }


def run(document: Document, folder: Path, *how: str, linger: int = LINGER) -> list[str]:
    """Run the sessions of a document; return what is not as it says, a paragraph each."""
    steps: list[tuple[Block, Command]] = []
    script = ["PS1=", "shopt -s expand_aliases 2>/dev/null"]
    for block in document.blocks:
        if block.language == "console" and block.how in how:
            for command in block.commands():
                text = command.text
                if block.how == "collect":
                    text = "\n".join(f"{line} --collect-only -qq" for line in _uncommented(text))
                script += [f"printf '{MARK}%s\\n' begin", "{ " + text + "\n}", f"printf '{MARK}%s\\n' \"$?\""]
                steps.append((block, command))
        elif "file" in block.notes:
            name = shlex.quote(block.notes["file"])
            script += [f'mkdir -p "$(dirname {name})"', f"cat > {name} <<'END OF BLOCK'\n{block.text}END OF BLOCK"]
    if not steps:
        return []
    script.append(f'for _ in {{1..{linger}}}; do [ -z "$(jobs -pr)" ] && break; sleep 0.1; done')
    script.append(f"printf '{MARK}left %s\\n' \"$(jobs -pr | wc -w)\"")
    text = "\n".join(script)
    printed, ended = _bash(text, sandbox(folder, document.empty_folder, text), environment(folder, "snapshot" in document.text))
    return _compare(document, steps, printed, ended)


def _uncommented(text: str) -> list[str]:
    return [re.sub(r"\s+#.*$", "", line) for line in text.splitlines()]


def _bash(script: str, place: Path, env: dict[str, str]) -> tuple[str, bool]:
    """Run a script; return what it printed on both streams, and whether it came to its end. No process of it is left.

    It prints to a file, since whoever keeps a pipe open would keep us waiting for its end.
    """
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-c", script],
            cwd=place,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(PATIENCE)
            ended = True
        except subprocess.TimeoutExpired:
            ended = False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        out.seek(0)
        return out.read().decode(errors="replace"), ended


def _compare(document: Document, steps: list[tuple[Block, Command]], printed: str, ended: bool) -> list[str]:
    pieces = printed.split(MARK + "begin\n")[1:]
    problems = []
    for (block, command), piece in zip(steps, pieces, strict=False):
        output, _, after = piece.partition(MARK)
        where = f"{document.name}, line {block.line}: {command.text}"
        status = after.split("\n", 1)[0]
        if not status.isdigit():
            problems.append(f"{where}\ndid not come to its end within {PATIENCE} s; it printed:\n{output}")
            break
        if int(status) != command.status:
            problems.append(f"{where}\nended with status {status}, not {command.status}; it printed:\n{output}")
        elif command.shown is not None and not fits(command.shown, output.splitlines()):
            problems.append(f"{where}\nprinted, otherwise than the document says:\n{output}")
    if ended and len(pieces) < len(steps):
        problems.append(f"{document.name}: the shell ended after {len(pieces)} of {len(steps)} commands.")
    left = re.search(MARK + r"left (\d+)", printed)
    if left is not None and int(left[1]):
        problems.append(f"{document.name}: {left[1]} process(es) are left running.")
    return problems


def fits(shown: list[str], printed: list[str]) -> bool:
    """Whether what was printed is what is shown, with its ellipses, but for times and the like."""
    pattern = ""
    for line in shown:
        if line.strip() in ("…", "..."):
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*".join(re.escape(part) for part in _steady(line).split("…")) + r"\n"
    text = "".join(_steady(line) + "\n" for line in printed)
    return re.fullmatch(pattern, text.rstrip("\n") + "\n") is not None


def _steady(line: str) -> str:
    line = re.sub(r"^\s*\d+\s+\d+\.\d+ ", "N T ", line)  # a line of a timeline
    line = re.sub(r"(?<![\w.])\d+\.\d+(?![\w.]| [MG]B)", "T", line)
    line = re.sub(r"\bframe \d+|\bline \d+", "frame N", line)
    line = re.sub(r"(127\.0\.0\.1:|\"pid\": ?)\d+", r"\1N", line)
    return re.sub(r"\s+", " ", line).strip()


def foreign(site: Path) -> list[str]:
    """Return what the pages of a built site would load from elsewhere, as `page: address`."""
    found = []
    for page in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        text = page.read_text(encoding="utf-8")
        links = [
            link
            for link in re.findall(r"<link\b[^>]*>", text)
            if re.search(r"rel=.?(canonical|next|prev|alternate)", link) is None
        ]
        sources = re.findall(r"<(?:script|img|iframe|source|video|audio)\b[^>]*>", text) + re.findall(r"url\([^)]*\)", text)
        outward = re.compile(r"""(?:src=|href=|url\()["']?(?:https?:)?//""")
        found += [f"{page.relative_to(site)}: {element}" for element in links + sources if outward.search(element)]
    return found


if __name__ == "__main__":
    hits = foreign(Path(sys.argv[1]))
    print("\n".join(hits) or f"The pages in {sys.argv[1]} load nothing from elsewhere.")
    sys.exit(bool(hits))
