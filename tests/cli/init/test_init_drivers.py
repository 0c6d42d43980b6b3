"""The skeletons of editor drivers that `codex-replay init editor --kind` writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.cli.init.drivers import DRIVERS
from tests.cli.init.test_init import LUA, NODE, NVIM, ROOT, found, run, tree


def test_the_python_skeleton_can_report_an_approval(tmp_path: Path) -> None:
    """An approval has a field `kind`, which must not be taken for the kind of the report."""
    run(tmp_path, "init", "editor", "--kind", "python")
    path = tmp_path / "codex-replay-driver.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace('report("error", message=', 'report("approval", id="1", kind="command", message='), encoding="utf-8"
    )
    command = '{"do":"prompt","text":"Hi"}\n'
    done = subprocess.run([sys.executable, str(path), "codex"], input=command, capture_output=True, text=True, check=True)
    first = json.loads(done.stdout.splitlines()[0])
    assert (first["report"], first["kind"]) == ("approval", "command")


@pytest.mark.parametrize("kind", ["python", "node", "lua"])
def test_the_skeleton_of_a_driver_names_every_report(kind: str) -> None:
    text = DRIVERS[kind][2]
    page = (ROOT / "docs" / "editor-client.md").read_text(encoding="utf-8")
    names = set(re.findall(r'\{"report": "(\w+)"', page)) - {"reasoning"}  # that one is optional
    assert len(names) == 7
    for name in sorted(names):
        assert re.search(rf"""report\(['"]{name}['"]""", text), name


@pytest.mark.parametrize("kind", ["python", "node", "lua"])
def test_the_skeleton_names_the_members_that_the_document_demands(kind: str) -> None:
    """Codex accepts a request without them, but the checks do not."""
    head = " ".join(re.sub(r"^(//|--)", "", line).strip() for line in DRIVERS[kind][2].splitlines()[:12])
    assert "thread/start has only cwd and sandbox: null (check `thread-members`)" in head
    assert "turn/start has only threadId, input and cwd (check `turn-members`)" in head


@pytest.mark.parametrize(
    ("kind", "program"),
    [("python", "python3"), pytest.param("node", "node", marks=NODE), pytest.param("lua", "lua5.4", marks=LUA)],
)
def test_the_skeleton_of_a_driver_keeps_the_contract_and_says_what_to_connect(kind: str, program: str, tmp_path: Path) -> None:
    data = found(tmp_path, "editor", "--kind", kind)
    (name,) = tree(tmp_path)
    runner = {"lua": "nvim --headless -l"}.get(kind, program)
    assert data["next"][1].endswith(f'codex-replay init editor "{runner} {name} {{codex}}"')
    done = run(tmp_path, "init", "editor", f"{program} {name} {{codex}}")
    assert done.returncode == 1, done.stderr
    assert f"The editor reports that its first turn ended as failed: prompt() of {name} is not connected" in done.stdout
    assert tree(tmp_path) == [name]
    (tmp_path / name).write_text("mine")
    assert found(tmp_path, "editor", "--kind", kind)["files"][0]["action"] == "keep"
    assert (tmp_path / name).read_text() == "mine"
    assert run(tmp_path, "init", "editor", "--kind", kind, "vim").returncode == 2


PROMPT = json.dumps({"do": "prompt", "text": 'a "b" \\ \u00e9 \U0001f600 \n'})


@LUA
def test_the_lua_skeleton_reads_and_writes_json_without_a_library(tmp_path: Path) -> None:
    run(tmp_path, "init", "editor", "--kind", "lua")
    path = tmp_path / "codex-replay-driver.lua"
    shown = "report('text', { text = text, list = { 1, { a = true } } })"
    head = "function plugin.prompt(text)\n"
    text = path.read_text(encoding="utf-8").replace(head, f"{head}  {shown}\n")
    path.write_text(text.replace("decide(id, decision) end", "decide(id, decision) report(decision, { id = id }) end"))
    command = f'{PROMPT}\n{{"do": "decide", "id": 12, "decision": "accept"}}\n'
    done = subprocess.run(["lua5.4", str(path), "codex"], input=command, capture_output=True, text=True, check=True, timeout=60)
    first, *_, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert first == {"report": "text", "text": json.loads(PROMPT)["text"], "list": [1, {"a": True}]}
    assert last == {"report": "accept", "id": 12}


@NVIM
def test_the_lua_skeleton_runs_in_neovim(tmp_path: Path) -> None:
    """Started by `luafile`, which older Neovims have as well."""
    run(tmp_path, "init", "editor", "--kind", "lua")
    command = ["nvim", "--headless", "-u", "NONE", "--cmd", "lua arg = {'codex'}", "-c", "luafile codex-replay-driver.lua"]
    done = subprocess.run(command, cwd=tmp_path, input=f"{PROMPT}\n", capture_output=True, text=True, check=True, timeout=60)
    assert [json.loads(line)["report"] for line in done.stdout.splitlines()] == ["error", "end"]
