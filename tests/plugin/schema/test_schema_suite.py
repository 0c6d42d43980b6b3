"""The schema suite can fail: every one of its cases is turned red by some damage to the files or cassettes it judges."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.core.cassette.frames import Frame, Header
from codex_replay.plugin.schema.fixtures import BundleFiles, checked_frames
from codex_replay.protocol import data_tables
from codex_replay.protocol.schema import bundle
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.files import version_data

ROOT = Path(__file__).parents[3]
PRIMARY = data_tables.PRIMARY
VENDORED = dict(data_tables.schema())
Edit = Callable[[dict[str, Any]], None]


def properties(*names: str) -> Edit:
    """Add properties to a type."""
    return lambda node: node.setdefault("properties", {}).update({name: {"type": "string"} for name in names})


def without(*names: str) -> Edit:
    """Remove properties from a type."""

    def edit(node: dict[str, Any]) -> None:
        for name in names:
            node["properties"].pop(name, None)

    return edit


def double(node: dict[str, Any]) -> None:
    node["oneOf"].append(node["oneOf"][0])


def rename_method(old: str, new: str) -> Edit:
    def edit(node: dict[str, Any]) -> None:
        for branch in node["oneOf"]:
            if branch["properties"]["method"]["enum"] == [old]:
                branch["properties"]["method"]["enum"] = [new]

    return edit


def forget_event(node: dict[str, Any]) -> None:
    for union in (node, node["definitions"]["EventMsg"]):
        union["oneOf"] = [
            b for b in union["oneOf"] if "dynamic_tool_call_request" not in b["properties"].get("type", {}).get("enum", [])
        ]


def strange_tool(node: dict[str, Any]) -> None:
    spec = node["definitions"]["DynamicToolSpec"]
    spec["properties"]["description"] = {"type": ["string", "null"]}


def event_params(node: dict[str, Any]) -> None:
    node["oneOf"][0]["properties"]["params"] = {"$ref": "#/definitions/EventMsg"}


def in_primary(name: str, edit: Edit) -> Edit:
    """Edit one definition of the primary file."""

    def apply(node: dict[str, Any]) -> None:
        definitions = node["definitions"]
        edit(definitions["v2"][name.removeprefix("v2/")] if name.startswith("v2/") else definitions[name])

    return apply


def close(node: dict[str, Any]) -> None:
    node["additionalProperties"] = False


DAMAGE: list[tuple[str, Edit]] = [
    *[(f"{name}.json", double) for name in ("ClientRequest", "ServerNotification", "ServerRequest", "ClientNotification")],
    ("EventMsg.json", double),
    ("ServerRequest.json", rename_method("item/tool/call", "item/tool/run")),
    ("ServerNotification.json", rename_method("error", "codex/event/error")),
    ("ServerNotification.json", rename_method("error", "dynamic_tool_call_request")),
    ("ServerNotification.json", forget_event),
    ("ServerNotification.json", event_params),
    ("EventMsg.json", forget_event),
    ("JSONRPCMessage.json", lambda node: properties("jsonrpc")(node["definitions"]["JSONRPCRequest"])),
    ("v1/SendUserTurnParams.json", close),
    ("v1/SendUserTurnParams.json", properties("tools", "responseFormat", "finalOutputJsonSchema")),
    ("v1/SendUserTurnParams.json", without("outputSchema", "items")),
    ("v1/SendUserMessageParams.json", properties("responseFormat", "finalOutputJsonSchema", "outputSchema")),
    ("v1/SendUserMessageParams.json", without("items")),
    ("v1/NewConversationParams.json", properties("dynamicTools")),
    ("v1/NewConversationParams.json", without("developerInstructions", "baseInstructions", "config")),
    ("v2/ThreadStartParams.json", strange_tool),
    ("v2/ThreadStartParams.json", without("developerInstructions", "baseInstructions", "config", "dynamicTools")),
    ("v2/TurnStartParams.json", without("outputSchema")),
    ("v2/ThreadStartParams.json", lambda node: close(node["definitions"]["DynamicToolSpec"])),
    ("DynamicToolCallResponse.json", without("success")),
    (PRIMARY, in_primary("SendUserTurnParams", properties("tools"))),
    (PRIMARY, in_primary("SendUserMessageParams", properties("tools"))),
    (PRIMARY, in_primary("v2/TurnStartParams", properties("dynamicTools", "tools"))),
    (PRIMARY, in_primary("v2/ToolsV2", properties("shell"))),
]


def damaged(name: str, edit: Edit) -> BundleFiles:
    node = json.loads(VENDORED[name])
    edit(node)
    return BundleFiles({**VENDORED, name: json.dumps(node).encode()}, "damaged")


def cases() -> Iterator[Any]:
    """Every case of the suite that judges the files, with its parameters."""
    for name in ("test_counts", "test_tools", "test_anchors"):
        module = importlib.import_module(f"suites.schema.{name}")
        for title, function in inspect.getmembers(module, inspect.isfunction):
            if not title.startswith("test_"):
                continue
            marks = [m for m in getattr(function, "pytestmark", []) if m.name == "parametrize"]
            if not marks:
                yield pytest.param(function, {}, id=f"{name}-{title}")
                continue
            names, values = marks[0].args[:2]
            names = [names] if isinstance(names, str) else names
            for value in values:
                given = dict(zip(names, [value] if isinstance(value, str) else value, strict=True))
                yield pytest.param(function, given, id=f"{name}-{title}-{'-'.join(given.values())}")


def holds(function: Callable[..., None], given: dict[str, str], files: BundleFiles) -> bool:
    arguments: dict[str, Any] = dict(given)
    wanted = inspect.signature(function).parameters
    if "bundle_files" in wanted:
        arguments["bundle_files"] = files
    if "definitions" in wanted:
        arguments["definitions"] = files.json(PRIMARY)["definitions"]
    try:
        function(**arguments)
    except Exception:
        return False
    return True


@pytest.fixture(scope="module")
def broken() -> list[BundleFiles]:
    return [damaged(name, edit) for name, edit in DAMAGE]


@pytest.mark.parametrize(("function", "given"), list(cases()))
def test_every_case_holds_and_can_fail(function, given, broken):
    assert holds(function, given, BundleFiles(VENDORED, "vendored"))
    assert any(not holds(function, given, files) for files in broken)


def test_every_damage_is_noticed(broken):
    for (name, edit), files in zip(DAMAGE, broken, strict=True):
        assert any(not holds(*case.values, files) for case in cases()), (name, edit)


def write_cassette(path: Path, frames: list[tuple[str, Any]]) -> None:
    header = Header("0.92.0", bundle.load().sha256, "schema/made", {"rpc": "authored"})
    with CassetteWriter(path, header) as writer:
        for number, (sender, value) in enumerate(frames, 1):
            writer.write(Frame(number, 0.0, "rpc", sender, "msg", json.dumps(value).encode() + b"\n"))


def run_suite(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60)


def test_a_bad_server_frame_in_a_cassette_turns_the_suite_red(tmp_path):
    ask = ("client", {"id": 0, "method": "getUserAgent"})
    write_cassette(tmp_path / "good.ndjson", [ask, ("server", {"id": 0, "result": {"userAgent": "u"}})])
    write_cassette(tmp_path / "odd.ndjson", [ask, ("server", {"id": 0, "result": {"userAgent": "u", "user_agent": "u"}})])
    write_cassette(tmp_path / "client.ndjson", [("client", {"id": 0, "method": "bogus"})])
    (last,) = [frame for frame in checked_frames(tmp_path / "odd.ndjson") if frame.violations]
    assert (last.n, last.violations[0].path) == (2, "getUserAgent.result.user_agent")
    done = run_suite("suites/schema/test_cassettes.py", "--cassettes", str(tmp_path), "--report", str(tmp_path / "report"))
    assert done.returncode == 1, done.stdout
    assert "frame 2: `user_agent` is not known on getUserAgent.result. Did you mean `userAgent`?" in done.stdout
    assert "1 failed, 2 passed" in done.stdout


def test_a_live_subject_that_generates_other_files_turns_the_suite_red(tmp_path):
    program = tmp_path / "codex.py"
    program.write_text(
        "import os, shutil, sys\n"
        f"shutil.copytree({version_data.schema_folder('0.92.0')!r}, sys.argv[-1], dirs_exist_ok=True)\n"
        "path = os.path.join(sys.argv[-1], 'v2', 'ThreadStartParams.json')\n"
        "text = open(path).read()\n"
        "open(path, 'w').write(text.replace('dynamicTools', os.environ.get('NAME', 'dynamicTool')))\n"
    )
    subject = f"{sys.executable} {program} app-server"
    options = ("suites/schema/test_tools.py", "--app-server", subject, "--report", str(tmp_path / "report"))
    done = run_suite(*options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_dynamic_tools_on_thread_start" in done.stdout
    program.write_text("import sys; print('no such command', file=sys.stderr); sys.exit(2)")
    done = run_suite(*options)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ended with status 2 and wrote no schemas: no such command" in done.stdout


def test_a_missing_file_is_named_with_its_program() -> None:
    with pytest.raises(AssertionError, match=r"The schemas of codex@later have no file v1/NewConversationParams\.json\."):
        BundleFiles({}, "codex@later").json("v1/NewConversationParams.json")
