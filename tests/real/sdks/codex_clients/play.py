"""Play Codex clients that others wrote on the real server and on the scripted fake, and compare what they report.

    python -m tests.real.sdks.codex_clients.play [--times 20] [--only NAME]    plays; prints a line of JSON for each client
    python -m tests.real.sdks.codex_clients.play --page                        prints docs/codex-clients.md from outcomes.json

Each round has two processes of the client: the first plays all features except the last, the second one resumes a thread of the
first. The settings of the fake are the default, with a state folder for the second process.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from codex_replay.core.wire.json_text import dumps
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential import vocabulary
from tests.real.differential.scenarios import TOOL, dynamic, patch, shell
from tests.real.sdks.client_venv import node_modules, python_with

HERE = Path(__file__).parent
FAKE = str(Path(sys.executable).with_name("fake-codex"))
FEATURES = ("text", "two turns", "approvals", "dynamic tool", "interrupt", "errors", "image", "resume")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True)
class CodexClient:
    """A client: its package, the folder or file of its environment, its driver, and the Codex version that it is played on."""

    package: str
    driver: str
    codex: str
    kind: str = "app-server"
    environment: str = ""

    @property
    def name(self) -> str:
        """The package without its version."""
        return self.package.rpartition("@")[0]

    @property
    def model(self) -> str:
        """A model that this version knows."""
        return "gpt-5.2-codex" if self.codex == "0.92.0" else "gpt-5.5"


CLIENTS = (
    CodexClient("codex-python-sdk@0.2.1", "codex_python_sdk_driver.py", "0.92.0"),
    CodexClient("codex-agent-sdk@0.0.2", "codex_agent_sdk_driver.py", "0.92.0"),
    CodexClient("codex-sdk-python@0.117.0", "codex_sdk_python_driver.py", "0.92.0"),
    CodexClient("codex-app-server-client@0.1.0", "codex_app_server_client_driver.py", "0.169.0"),
    CodexClient("codex-python-sdk-unofficial@0.128.0", "codex_python_sdk_unofficial_driver.py", "0.169.0"),
    CodexClient("openai-codex@0.163.0", "openai_codex_driver.py", "0.169.0"),
    CodexClient("ai-sdk-provider-codex-cli@1.4.1", "ai_sdk_driver.mjs", "0.169.0", environment="codex-app-server-npm"),
    CodexClient("openai-codex-sdk@0.1.11", "openai_codex_sdk_driver.py", "0.92.0", kind="exec"),
    CodexClient("@openai/codex-sdk@0.163.0", "codex_exec_driver.mjs", "0.92.0", kind="exec", environment="codex-npm"),
)


def script(client: CodexClient) -> list[Any]:
    """The turns of the model, by prompt: each feature has prompts of its own."""
    codex = client.codex
    run = shell("call_run", "printf 'two words'")
    refuse = shell("call_not", "printf marker")
    if codex != "0.92.0":
        run, refuse = (
            {**call, "name": "exec_command", "arguments": {"cmd": json.loads(call["arguments"])["command"]}}
            if isinstance(call["arguments"], str)
            else {**call, "name": "exec_command", "arguments": {"cmd": call["arguments"]["command"]}}
            for call in (run, refuse)
        )
    change = patch("call_patch", next(text for text in vocabulary.PATCHES if "Update File: old.txt\n@@\n a\n-b\n+B" in text))
    turns: list[tuple[str, list[Any]]] = [
        ("<text>", ["Hello ✓, this is a text in several deltas."]),
        ("<first>", ["One."]),
        ("<second>", ["Two."]),
        ("<run>", [run, "It ran."]),
        ("<refuse>", [refuse, "It did not run."]),
        ("<patch>", [change, "It is changed."]),
        ("<tool>", [dynamic("call_tool", "Zürich"), "It is 21 degrees."]),
        ("<after>", ["Still here."]),
        ("<image>", ["A pixel."]),
        ("<again>", ["Hello again."]),
        ("<stranger>", ["Who are you?"]),
    ]
    # A thread's history has its earlier prompts, too: the latest prompt comes first.
    last: list[Any] = [{"match": prompt, "items": items[-1:], "times": "always"} for prompt, items in reversed(turns)]
    calls = [{"match": prompt, "items": items[:1]} for prompt, items in turns if len(items) == 2]
    # `codex exec` has no message that opens a gate; the client aborts the wait.
    stop = {"type": "wait", "ms": 20_000} if client.kind == "exec" else {"type": "gate", "name": "held"}
    held = {"match": "<held>", "items": [stop, "Never."], "times": "always"}
    fails = {"match": "<fails>", "status": 400, "error": {"message": "no such thing", "code": "invalid_value"}, "times": "always"}
    return [*calls, *last, held, fails]


def command(client: CodexClient) -> list[str]:
    """The command that runs the driver in the client's environment."""
    if client.driver.endswith(".py"):
        return [python_with(client.name), str(HERE / client.driver)]
    node = shutil.which("node")
    assert node is not None, "These clients need node on the PATH"
    return [node, str(HERE / client.driver)]


def drive(client: CodexClient, codex: str, home: HermeticHome, env: dict[str, str]) -> dict[str, Any]:
    """Play one round; return what the client reports of each feature."""
    vocabulary.fill(home.work)
    image = home.work / "pixel.png"
    image.write_bytes(base64.b64decode(PIXEL))
    job: dict[str, Any] = {"codex": codex, "cwd": str(home.work), "tool": TOOL, "answer": answer(client.codex)}
    job |= {"image": f"data:image/png;base64,{PIXEL}", "image_file": str(image), "resume": None, "model": client.model}
    if client.environment:
        job["modules"] = str(node_modules(client.environment))
    found: dict[str, Any] = {}
    for _ in range(2):
        done = subprocess.run(
            command(client), input=json.dumps(job), env=env, cwd=home.work, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{client.driver} failed: {done.stderr[-2000:]}"
        report = json.loads(done.stdout)
        found |= report["features"]
        job["resume"] = report["thread"]
        if not job["resume"]:
            found["resume"] = {"raised": "no thread to resume"}
            break
    return comparable(found, home.work.parent)


def answer(codex: str) -> dict[str, Any]:
    """The answer of the client's tool in the form of this version."""
    if codex == "0.92.0":
        return {"success": True, "output": "21 degrees ☂"}
    return {"success": True, "contentItems": [{"type": "inputText", "text": "21 degrees ☂"}]}


TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")
OUTCOMES = HERE / "outcomes.json"
INTRODUCTION = """# Codex clients

This page is for authors of a Codex client, and shows which published clients get the same from fake-codex as from the real
Codex. Each client was played 20 times on the real Codex and 20 times on the scripted fake-codex, with the default settings and
`FAKE_CODEX_STATE` ([fake-codex](fake-codex.md#more-than-one-process)). An outcome is the text, the status or the exception, the
approvals, and the kinds of events that the client reports. A cell shows how often the real Codex gave its most frequent outcome,
and how often fake-codex gave an outcome of the real Codex. The usage events of an interrupted turn do not count: whether the
server sends them depends on when the interrupt comes. A cell with words says why the client has no such feature.

The clients of 0.169.0 pass `--listen`, which 0.92.0 refuses, or need a newer server. The folder
`tests/real/sdks/codex_clients` has a program for each client. To play them again:

<!-- run: no (it needs the real Codex and the package registries, and takes minutes) -->
```console
$ python -m tests.real.sdks.codex_clients.play --times 20
```
"""
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def comparable(value: dict[str, Any], root: Path) -> Any:
    """The value without ids, ports and directories."""
    _without_races(value)
    if isinstance(value.get("interrupt"), list) and "events" in value["interrupt"][0]:
        value["interrupt"][0]["events"] = [kind for kind in value["interrupt"][0]["events"] if kind not in USAGE]
    text = TIME.sub("<time>", json.dumps(value, ensure_ascii=False).replace(str(root), "<root>"))
    return json.loads(re.sub(r"127\.0\.0\.1:\d+(/s/[^/\"]+)?", "<backend>", UUID.sub("<id>", text)))


#: The real server sends these before or after the reply, or after the end of the turn, by chance: not every turn shows them.
RACES = {"thread/started", "account/rateLimits/updated", "available_commands_update", "session_info_update"}


#: An interrupted turn shows these if the reply of the model began before the interrupt came. With the real server, a client that
#: interrupts 0.6 s after turn/started gets them, and a client that interrupts at once does not.
USAGE = {"codex/event/token_count", "thread/tokenUsage/updated"}


def _without_races(value: Any) -> None:
    """Remove the kinds of events that a turn shows by chance."""
    if isinstance(value, dict):
        if "events" in value:
            value["events"] = [kind for kind in value["events"] if kind not in RACES]
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        _without_races(item)


def on_real(client: CodexClient, root: Path, backend: BackendProcess) -> dict[str, Any]:
    """Play a round on the real server."""
    binary = find_installed(client.codex)
    assert binary is not None, f"Codex {client.codex} is missing: run `codex-replay codex install {client.codex}` first"
    session = backend.session(f"{client.driver} {root.name}", script(client))
    home = HermeticHome(root, session.url, version=client.codex, model=client.model)
    return drive(client, str(binary), home, home.env)


def on_fake(client: CodexClient, root: Path, backend: BackendProcess) -> dict[str, Any]:
    """Play a round on the scripted fake."""
    url = backend.session(f"nobody {client.driver} {root.name}", []).url
    home = HermeticHome(root, url, version=client.codex, model=client.model)
    (root / "script.json").write_bytes(dumps(script(client)))
    env = {**home.env, "FAKE_CODEX_SCRIPT": str(root / "script.json"), "FAKE_CODEX_STATE": str(root / "state")}
    if client.codex != "0.92.0":
        env["FAKE_CODEX_VERSION"] = client.codex
    return drive(client, FAKE, home, env)


def count(client: CodexClient, times: int, backend: BackendProcess, show: Callable[[str], None]) -> dict[str, Any]:
    """Play rounds on both servers, in turn; return for each feature what the real one gave and how often each server gave it."""
    seen: dict[str, dict[str, list[Any]]] = {name: {"real": [], "fake": []} for name in FEATURES}
    for n in range(times):
        for side, play in (("real", on_real), ("fake", on_fake)):
            with tempfile.TemporaryDirectory(prefix="codex-clients-", ignore_cleanup_errors=True) as folder:
                root = Path(folder) / f"{side}{n}"
                root.mkdir()
                for name, outcome in play(client, root, backend).items():
                    seen[name][side].append(outcome)
    found: dict[str, Any] = {}
    for name, sides in seen.items():
        usual = max(sides["real"], key=sides["real"].count)
        if "lacks" in usual:
            found[name] = usual["lacks"]
            continue
        found[name] = [sides["real"].count(usual), sum(outcome in sides["real"] for outcome in sides["fake"])]
        for side in ("real", "fake"):
            for other in sides[side]:
                if other not in (sides["real"] if side == "fake" else [usual]):
                    show(f"{client.name}, {name}: {side}: {json.dumps(other, ensure_ascii=False)}")
                    show(f"{' ' * len(client.name)}  usual on the real server: {json.dumps(usual, ensure_ascii=False)}")
                    break
    return found


def page(outcomes: dict[str, dict[str, Any]]) -> str:
    """Return the text of docs/codex-clients.md."""
    text = INTRODUCTION
    for kind, title in (("app-server", "Clients of the app-server"), ("exec", "SDKs of `codex exec`")):
        text += f"\n## {title}\n\n| client | Codex | {' | '.join(FEATURES)} |\n|---|---|{'---|' * len(FEATURES)}\n"
        for client in CLIENTS:
            if client.kind == kind:
                cells = [_cell(outcomes[client.package][name]) for name in FEATURES]
                text += f"| {client.name} {client.package.rpartition('@')[2]} | {client.codex} | {' | '.join(cells)} |\n"
    return text


def _cell(found: list[int] | str) -> str:
    return found if isinstance(found, str) else f"{found[0]} / {found[1]}"


def main() -> None:
    """Play what the command line names."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=1, help="how often each feature is played on each server; default 1")
    parser.add_argument("--only", default="", help="a part of the names of the clients to play; default: all clients")
    parser.add_argument("--page", action="store_true", help="print docs/codex-clients.md, and play nothing")
    given = parser.parse_args()
    chosen = [client for client in CLIENTS if given.only in client.package]
    if not chosen:
        names = ", ".join(client.package for client in CLIENTS)
        parser.error(f"--only {given.only}: no client has this name. The clients are {names}.")
    if given.page:
        sys.stdout.write(page(json.loads(OUTCOMES.read_text())))
        return
    with BackendProcess() as backend:
        for client in chosen:
            found = count(client, given.times, backend, lambda line: print(line, file=sys.stderr))
            print(json.dumps({client.package: found}, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
