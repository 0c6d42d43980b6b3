"""The vocabulary of commands and patches for random scripts: what each gives on the real binary, recorded, not guessed.

`python -m tests.real.differential.vocabulary` records it anew into tests/data/vocabulary.json. A command is run with nothing
forbidden; what
it prints, how it is parsed and which rule is proposed for it is then the `result` of its call in a script.
"""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

from codex_replay.shell.rpc.client import Client

FILE = Path(__file__).parents[2] / "data" / "vocabulary.json"
FILES = {"old.txt": "a\nb\nc\n", "gone.txt": "bye\n", "deep/er.txt": "one\ntwo\n"}
COMMANDS = [
    "printf marker",
    "printf 'two words'",
    "printf 'é ☂\\n'",
    "printf out; sleep 0.2; printf err >&2",  # without the pause the real server tells the two streams in either order
    "printf err >&2; exit 3",
    "printf 'a\\nb\\nc\\n'",
    "true",
    "false",
    "exit 7",
    "echo hello",
    "pwd > /dev/null",
    "cat old.txt",
    "cat old.txt | head -1",
    "head -n 2 old.txt",
    "sed -n 1,2p old.txt",
    "ls",
    "ls nowhere",
    "grep b old.txt",
    "grep -n z old.txt",
    "wc -l old.txt && true",
    "test -f old.txt || printf no",
    "FOO=1 printf x",
    "printf $((1 + 2))",
    'printf "it\'s"',
    "cat <<'X'\nhere\nX",
    "mkdir -p made && touch made/f",
    "git --version > /dev/null",
    "nonesuch-command",
]
PATCHES = [
    "*** Begin Patch\n*** Add File: new.txt\n+one\n+two\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: old.txt\n@@\n a\n-b\n+B\n c\n*** End Patch\n",
    "*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\n",
    "*** Begin Patch\n*** Add File: sub/dir/x.py\n+print('é')\n"
    "*** Update File: deep/er.txt\n@@\n-one\n+ONE\n two\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n a\n-b\n+x\n c\n*** End Patch\n",
    "*** Begin Patch\nnonsense\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: nowhere.txt\n@@\n-a\n+b\n*** End Patch\n",
]


def shell(command: str, call: str) -> dict[str, Any]:
    return {"type": "function_call", "name": "shell_command", "arguments": {"command": command}, "call_id": call}


def patch(text: str, call: str) -> dict[str, Any]:
    return {"type": "custom_tool_call", "name": "apply_patch", "input": text, "call_id": call}


def fill(work: Path) -> None:
    """Make the files that the commands and patches expect."""
    for name, text in FILES.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)


def script() -> list[Any]:
    """The script by which the vocabulary is recorded: a turn a word."""
    turns: list[Any] = []
    for i, command in enumerate(COMMANDS):
        turns += [{"items": [shell(command, f"c{i}")]}, {"items": ["ok"]}]
    for i, text in enumerate(PATCHES):
        turns += [{"items": [patch(text, f"p{i}")]}, {"items": ["ok"]}]
        turns += [{"items": [patch(text, f"d{i}")], "match": f"again {text}"}, {"items": ["ok"], "match": f"again {text}"}]
    return turns


def record(client: Client, root: Path, outputs: Any) -> dict[str, Any]:
    """Say each word to the real server, each in a directory of its own; return what each gives.

    `outputs` is called at the end and gives call id -> what the model was told.
    """
    found: dict[str, Any] = {"commands": {}, "patches": {}}
    words = [("commands", c, f"c{i}") for i, c in enumerate(COMMANDS)] + [("patches", p, f"p{i}") for i, p in enumerate(PATCHES)]
    for sort, word, call in words:
        work = root / call
        work.mkdir(parents=True)
        fill(work)
        settings = {"cwd": str(work), "approvalPolicy": "untrusted", "sandbox": "danger-full-access"}
        thread = client.request("thread/start", settings)["thread"]["id"]
        begin = len(client.timeline)
        client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "x"}]})
        while True:
            message = client.wait("a request or the end", lambda m, t=thread: _mine(m, t))
            if message["method"] == "turn/completed":
                break
            client.reply(message, {"decision": "accept"})
        events = [f.value["params"]["msg"] for f in client.timeline[begin:] if _is_event(f.value)]
        found[sort][word] = _gives(events, str(work))
    for sort, word, call in words:
        if "changes" in found[sort][word]:
            found[sort][word]["denied"] = _denied(client, root / f"{call}-denied", word)
    told = outputs()
    for sort, word, call in words:
        if sort == "patches" and "changes" not in found[sort][word]:
            found[sort][word]["error"] = told[call].replace(str(root / call), "{cwd}")
    return found


def _denied(client: Client, work: Path, text: str) -> dict[str, Any]:
    """Return what a patch says that may write nothing, before it is let out of the sandbox; `final` when it is not let out."""
    work.mkdir()
    fill(work)
    settings = {"cwd": str(work), "approvalPolicy": "untrusted", "sandbox": "read-only"}
    thread = client.request("thread/start", settings)["thread"]["id"]
    begin = len(client.timeline)
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": f"again {text}"}]})
    client.reply(client.wait("the request", lambda m: _mine(m, thread)), {"decision": "accept"})
    client.wait("the end", lambda m: _mine(m, thread))
    events = [f.value["params"]["msg"] for f in client.timeline[begin:] if _is_event(f.value)]
    said = b"".join(b64decode(event["chunk"]) for event in events if event.get("stream") == "stderr").decode()
    done = next(event["success"] for event in events if event["type"] == "patch_apply_end")
    return {"stderr": said} if done else {"stderr": said, "final": True}


def _mine(message: Any, thread: str) -> bool:
    if not isinstance(message, dict) or message.get("method") not in ("turn/completed", *REQUESTS):
        return False
    return bool(message["params"]["threadId"] == thread)


REQUESTS = ("item/commandExecution/requestApproval", "item/fileChange/requestApproval")


def _is_event(message: Any) -> bool:
    return isinstance(message, dict) and str(message.get("method")).startswith("codex/event/")


def _gives(events: list[dict[str, Any]], work: str) -> dict[str, Any]:
    gives: dict[str, Any] = {}
    for event in events:
        if event["type"] == "exec_approval_request":
            gives["amendment"] = event["proposed_execpolicy_amendment"]
        elif event["type"] == "exec_command_end":
            gives |= {"stdout": event["stdout"], "stderr": event["stderr"], "aggregated": event["aggregated_output"]}
            gives |= {"exit_code": event["exit_code"], "actions": event["parsed_cmd"]}
        elif event["type"] == "patch_apply_end":
            changes = {path.removeprefix(work + "/"): change for path, change in event["changes"].items()}
            for path, change in changes.items():
                if change["type"] == "update":
                    change["old"] = FILES[path]
                    change["new"] = _after(work, change.get("move_path") or path)
                    if change.get("move_path"):
                        change["move_path"] = change["move_path"].removeprefix(work + "/")
            gives |= {"changes": dict(sorted(changes.items())), "success": event["success"]}
            gives |= {"stdout": event["stdout"], "stderr": event["stderr"]}
    return gives


def _after(work: str, path: str) -> str:
    return Path(work, path.removeprefix(work + "/")).read_text()


def load() -> dict[str, Any]:
    """Return the recorded vocabulary."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Record it anew."""
    import tempfile

    from codex_replay.shell.codex.cache import find_installed
    from codex_replay.shell.codex.home import HermeticHome
    from codex_replay.shell.http.backend_process import BackendProcess
    from tests.fakes.scripted.conversing import initialize

    with tempfile.TemporaryDirectory() as root, BackendProcess() as backend:
        session = backend.session("vocabulary", script())
        home = HermeticHome(Path(root), session.url)
        client = Client([str(find_installed("0.92.0")), "app-server"], env=home.env, cwd=str(home.work), timeout=20)
        try:
            initialize(client)
            found = record(client, home.work, lambda: model_told(session))
            client.close()
        finally:
            client.stop()
    FILE.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def model_told(session: Any) -> dict[str, str]:
    """Return call id -> the output that the model was sent."""
    told = {}
    for entry in session.ledger():
        for item in (entry.get("body") or {}).get("input", []):
            if "output" in item:
                told[item["call_id"]] = item["output"]
    return told


if __name__ == "__main__":
    main()
