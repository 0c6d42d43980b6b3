"""What the real `codex exec` prints: `python -m tests.real.differential.record_exec` records tests/data/exec.json anew.

Masked are the working directory, ids, durations and times.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.real.differential import vocabulary

FILE = Path(__file__).parents[2] / "data" / "exec.json"
WORDS = vocabulary.load()
ADDED = next(text for text in WORDS["patches"] if "Add File: new.txt" in text)
ANYWHERE = "--skip-git-repo-check"


def shell(command: str) -> dict[str, Any]:
    return {**vocabulary.shell(command, "call_1"), "result": WORDS["commands"][command]}


TEXT = [{"items": ["Hello there."]}]
COMMAND = [
    {"items": ["I run it.", shell("printf err >&2; exit 3")]},
    {"items": [shell("printf 'a\\nb\\nc\\n'")]},
    {"items": ["Done."]},
]
PATCH = [{"items": [{**vocabulary.patch(ADDED, "call_1"), "result": WORDS["patches"][ADDED]}]}, {"items": ["Done."]}]
THOUGHT = [{"items": [{"type": "reasoning", "summary": ["**Think**"]}, {"type": "web_search_call", "query": "codex"}, "Ok."]}]
STEPS = [{"step": "a", "status": "completed"}, {"step": "b", "status": "in_progress"}, {"step": "c", "status": "pending"}]
PLAN = [
    {"items": [{"type": "function_call", "name": "update_plan", "arguments": {"explanation": "why", "plan": STEPS}}]},
    {"items": [{"type": "function_call", "name": "list_mcp_resources", "arguments": {}}]},
    {"items": []},
]
READ = {"type": "function_call", "name": "read_mcp_resource", "arguments": {"server": "mine", "uri": "a:b"}, "call_id": "call_1"}
UNKNOWN = [{"items": [READ]}, "Done."]
SEQ = {"stdout": "".join(f"{n}\n" for n in range(1, 31))}
LONG = [
    {"items": [shell("printf 'a\\nb\\nc\\n'")]},
    {"items": [{**vocabulary.shell("true", "call_2"), "result": {}}, {**vocabulary.shell("seq 30", "call_3"), "result": SEQ}]},
    {"items": ["Done.\n"]},
]
RAW = [{"items": [{"type": "reasoning", "summary": ["**One**", "two"], "content": ["raw"]}, "Ok."]}]
QUOTES = [{"status": 400, "body": "a\"b\n☂\u0007\u2028\\'"}]
REVIEWED = [{"items": [*RAW[0]["items"][:1], shell("printf 'a\\nb\\nc\\n'")]}, "The review."]
NETWORK = 'sandbox_workspace_write={network_access=true, exclude_slash_tmp=true, writable_roots=["/opt"]}'
CASES: dict[str, tuple[Any, list[str], str]] = {
    "text": (TEXT, [ANYWHERE, "Say hi"], ""),
    "text-json": (TEXT, [ANYWHERE, "--json", "Say hi"], ""),
    "text-experimental-json": (TEXT, [ANYWHERE, "--experimental-json", "Say hi"], ""),
    "text-stdin": (TEXT, [ANYWHERE, "-"], "From stdin\n"),
    "text-no-prompt": (TEXT, [ANYWHERE], "From stdin"),
    "nothing": (TEXT, [ANYWHERE], ""),
    "no-repository": (TEXT, ["Say hi"], ""),
    "last-message": (TEXT, [ANYWHERE, "--output-last-message", "last.txt", "Say hi"], ""),
    "last-message-json": (TEXT, [ANYWHERE, "-o", "last.txt", "--json", "Say hi"], ""),
    "settings": (TEXT, [ANYWHERE, "-m", "gpt-5.2", "-c", 'model_reasoning_effort="high"', "--full-auto", "Say hi"], ""),
    "command": (COMMAND, [ANYWHERE, "-s", "danger-full-access", "Run"], ""),
    "command-json": (COMMAND, [ANYWHERE, "--json", "-s", "danger-full-access", "Run"], ""),
    "patch": (PATCH, [ANYWHERE, "--full-auto", "Run"], ""),
    "patch-json": (PATCH, [ANYWHERE, "--full-auto", "--json", "Run"], ""),
    "thought": (THOUGHT, [ANYWHERE, "Run"], ""),
    "thought-json": (THOUGHT, [ANYWHERE, "--json", "Run"], ""),
    "plan": (PLAN, [ANYWHERE, "Run", "-o", "last.txt"], ""),
    "plan-json": (PLAN, [ANYWHERE, "--json", "Run"], ""),
    "failed": ([{"status": 500, "body": "x"}], [ANYWHERE, "Run"], ""),
    "failed-json": ([{"status": 400, "body": "bad body"}], [ANYWHERE, "--json", "Run"], ""),
    "unknown-option": (TEXT, ["--nope", "Say hi"], ""),
    "two-prompts": (TEXT, ["a", "b"], ""),
    "no-value": (TEXT, ["-o"], ""),
    "wrong-sandbox": (TEXT, [ANYWHERE, "-s", "open", "Say hi"], ""),
    "wrong-color": (TEXT, ["--color=pink", "Say hi"], ""),
    "contradiction": (TEXT, ["--full-auto", "--yolo", "Say hi"], ""),
    "profile": (
        TEXT,
        [ANYWHERE, "-c", 'profiles.fast={model="gpt-5.2", sandbox_mode="workspace-write"}', "-p", "fast", "Hi"],
        "",
    ),
    "no-profile": (TEXT, [ANYWHERE, "--json", "-p", "slow", "Say hi"], ""),
    "directories": (TEXT, [ANYWHERE, "--full-auto", "--add-dir", "sub", "--add-dir=/opt", "Say hi"], ""),
    "no-directories": (TEXT, [ANYWHERE, "-s", "read-only", "--add-dir", "sub", "Say hi"], ""),
    "network": (TEXT, [ANYWHERE, "-c", NETWORK, "-s", "workspace-write", "Say hi"], ""),
    "no-directory": (TEXT, [ANYWHERE, "-C", "nowhere", "Say hi"], ""),
    "no-schema": (TEXT, [ANYWHERE, "--json", "--output-schema", "none.json", "Say hi"], ""),
    "wrong-schema": (TEXT, [ANYWHERE, "--json", "--output-schema", "a.txt", "Say hi"], ""),
    "no-provider": (TEXT, [ANYWHERE, "--oss", "Say hi"], ""),
    "unknown-provider": (TEXT, [ANYWHERE, "--oss", "--local-provider", "mine", "Say hi"], ""),
    "images": (TEXT, [ANYWHERE, "-i", "a.png,b.png", "c.png", "--", "Say hi"], ""),
    "images-and-no-prompt": (TEXT, [ANYWHERE, "-i", "a.png", "Say hi"], "From stdin"),
    "failed-call": (UNKNOWN, [ANYWHERE, "Run"], ""),
    "failed-call-json": (UNKNOWN, [ANYWHERE, "--json", "Run"], ""),
    "version": (TEXT, ["--version"], ""),
    "long-output": (LONG, [ANYWHERE, "-s", "danger-full-access", "Run"], ""),
    "two-summaries": (RAW, [ANYWHERE, "Run"], ""),
    "raw-reasoning": (RAW, [ANYWHERE, "-c", "show_raw_agent_reasoning=true", "Run"], ""),
    "raw-reasoning-json": (RAW, [ANYWHERE, "--json", "-c", "show_raw_agent_reasoning=true", "Run"], ""),
    "hidden-reasoning": (RAW, [ANYWHERE, "-c", "hide_agent_reasoning=true", "Run"], ""),
    "no-equals": (TEXT, [ANYWHERE, "-c", "model", "Hi"], ""),
    "no-key": (TEXT, [ANYWHERE, "-c", "=x", "Hi"], ""),
    "wrong-value": (TEXT, [ANYWHERE, "-c", "model_reasoning_effort=zz", "Hi"], ""),
    "unknown-feature": (TEXT, [ANYWHERE, "--disable", "nonesuch", "Hi"], ""),
    "twice": (TEXT, [ANYWHERE, "-m", "a", "--model=b", "Hi"], ""),
    "unknown-after-options": (TEXT, [ANYWHERE, "-s", "read-only", "--enable", "web_search_request", "-C", ".", "--nope"], ""),
    "unknown-after-prompt": (TEXT, ["--json", "Hi", "--nope"], ""),
    "unknown-short": (TEXT, [ANYWHERE, "-z", "Hi"], ""),
    "unknown-in-resume": (TEXT, ["resume", "--last", "x", "--nope"], ""),
    "no-feature": (TEXT, ["--enable"], ""),
    "prompt-before-resume": (TEXT, ["Ignored", "resume", "--last", "Hi", ANYWHERE], ""),
    "review": (REVIEWED, [ANYWHERE, "-s", "danger-full-access", "review", " Look. "], ""),
    "review-json": (REVIEWED, [ANYWHERE, "-s", "danger-full-access", "--json", "review", "Look."], ""),
    "review-stdin": (TEXT, [ANYWHERE, "review", "-"], "From stdin\n"),
    "review-uncommitted": (TEXT, [ANYWHERE, "-o", "last.txt", "review", "--uncommitted"], ""),
    "review-commit": (TEXT, ["review", "--commit", "0123456789", "--title", " T ", "--json", ANYWHERE], ""),
    "review-options": (TEXT, [ANYWHERE, "review", "-m", "gpt-5.2", "--full-auto", "Look."], ""),
    "review-failed": ([{"status": 400, "body": "x"}], [ANYWHERE, "review", "Look."], ""),
    "review-failed-json": ([{"status": 400, "body": "x"}], [ANYWHERE, "--json", "review", "Look."], ""),
    "review-nothing": (TEXT, [ANYWHERE, "Ignored", "review"], ""),
    "review-blank": (TEXT, [ANYWHERE, "review", " "], ""),
    "review-two": (TEXT, ["review", "--uncommitted", "Look."], ""),
    "review-three": (TEXT, ["review", "--base", "a", "--uncommitted", "--commit", "b"], ""),
    "review-title": (TEXT, ["review", "--title", "T"], ""),
    "review-prompt-first": (TEXT, ["review", "Look.", "--uncommitted"], ""),
    "review-and-options": (TEXT, ["review", "--json", "--base", "x", "-m", "y", "Look."], ""),
    "access-twice": (TEXT, ["--json", "--yolo", "-m", "x", "--full-auto", "Hi"], ""),
    "access-of-resume": (TEXT, ["resume", "--yolo", "--full-auto", "--last", "Hi"], ""),
    "access-of-review": (TEXT, [ANYWHERE, "--yolo", "review", "--full-auto", "Look."], ""),
    "review-unknown": (TEXT, ["review", "--json", "-o", "last.txt"], ""),
    "review-two-prompts": (TEXT, ["review", "a", "b"], ""),
    "review-no-schema": (TEXT, [ANYWHERE, "--output-schema", "none.json", "review", "Look."], ""),
    "images-take-resume": (TEXT, [ANYWHERE, "-i", "a.png", "resume", "--last", "Hi"], ""),
    "flag-of-resume": (TEXT, [ANYWHERE, "--last=1", "Hi"], ""),
    "flag-before-resume": (TEXT, [ANYWHERE, "--last", "resume", "Hi"], ""),
    "flag-of-resume-in-review": (TEXT, [ANYWHERE, "review", "--last", "resume"], ""),
    "no-repository-yolo": (TEXT, ["--yolo", "Say hi"], ""),
    "no-repository-full-auto": (TEXT, ["--full-auto", "Say hi"], ""),
    "no-repository-review": (TEXT, ["review", "--yolo", "Look."], ""),
    "failed-with-quotes": (QUOTES, [ANYWHERE, "Run"], ""),
}


def run(command: list[str], case: str, home: Any, **env: str) -> dict[str, Any]:
    """Run one case with a command; return what it gave, masked."""
    _, args, stdin = CASES[case]
    vocabulary.fill(home.work)
    done = subprocess.run(
        [*command, "exec", *args], input=stdin.encode(), capture_output=True, env={**home.env, **env}, cwd=home.work, timeout=60
    )
    last = home.work / "last.txt"
    return {
        "status": done.returncode,
        "stdout": masked(done.stdout.decode(), home),
        "stderr": masked(done.stderr.decode(), home),
        "last": last.read_text() if last.exists() else None,
    }


def masked(text: str, home: Any) -> list[str]:
    """Return the lines of an output without what differs between two runs."""
    text = text.replace(str(home.work), "{cwd}")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "{thread}", text)
    text = re.sub(r" in \d+ms", " in {n}ms", text)
    return re.sub(r"(?m)^\d{4}-\d\d-\d\dT[\d:.]+Z ", "{time} ", text).split("\n")


def main() -> None:
    """Record all cases."""
    from codex_replay.shell.codex.cache import find_installed
    from codex_replay.shell.codex.home import HermeticHome
    from codex_replay.shell.http.backend_process import BackendProcess

    found = {}
    with BackendProcess() as backend:
        for case, (script, args, stdin) in CASES.items():
            with tempfile.TemporaryDirectory() as root:
                home = HermeticHome(Path(root), backend.session(case, script).url)
                gave = run([str(find_installed("0.92.0"))], case, home)
            found[case] = {"args": args, "stdin": stdin, "script": script, **gave}
    FILE.write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
