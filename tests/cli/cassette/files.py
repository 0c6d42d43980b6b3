"""What the tests of `codex-replay cassette` share: how they run it, and cassettes to run it on."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from codex_replay.cli.cassette.group import group
from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.shell.cassettes.file import CassetteWriter

DATA = Path(__file__).parents[2] / "data"
CASSETTES = DATA / "cassettes"
SHELL = str(CASSETTES / "shell-a.ndjson")
TOKEN = "sk-" + "proj-" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0"


def run(*args: str | Path) -> Result:
    result = CliRunner().invoke(group, [str(arg) for arg in args])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write(path: Path, *lines: bytes, origin: str = "authored", footer: bool = True, sender: str = "client") -> Path:
    with_header = Header("0.92.0", "unknown", "a/case", {"rpc": origin})
    writer = CassetteWriter(path, with_header)
    for number, line in enumerate(lines):
        writer.write(Frame(0, number / 10, "rpc", sender, "msg", line))
    if footer:
        writer.close()
    else:
        writer.abandon()
    return path
