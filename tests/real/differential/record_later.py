"""Record the conversations of a later version that the tests of the scripted fake play without the real binary.

`python -m tests.real.differential.record_later [NAME...]` records them again, from the real 0.169.0.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from codex_replay.core.cassette.frames import Header
from codex_replay.core.redact.redactor import Redactor
from codex_replay.shell.cassettes.file import CassetteWriter
from codex_replay.shell.codex.origin import bundle_of
from codex_replay.shell.http.backend_process import BackendProcess
from tests.real.differential import later_commands, later_lists
from tests.real.differential.later import ASKING, ESCALATED, FREE, GO, NEXT, TOOL, Both, at_once, command
from tests.real.differential.later_corners import BUSY, COMPACT, FAILED, FULL, MODELS, compacted, reviewed
from tests.real.differential.scenarios import GREETING, conversation
from tests.support import later_wrong

VERSION = "0.169.0"
FOLDER = Path(__file__).parents[2] / "data" / "scripted-later"
HI = ("echo hi", "hi\n", 0)
EDIT = {"keyPath": "model_reasoning_effort", "value": "high", "mergeStrategy": "upsert"}
TIERS = ("fast", "flex", "nonsense", None, "priority", "default")


def conversations() -> dict[str, dict[str, Any]]:
    """Return the conversations by name: together they have each event of the table."""

    def ran(more: dict[str, Any], settings: dict[str, Any], *decisions: Any) -> dict[str, Any]:
        script = [{"items": [command("call_1", *HI, **more)]}, {"items": [command("call_2", *HI, **more)]}, GREETING]
        return conversation([*script, GREETING], [{**GO, "decide": {"*": each}} for each in decisions], settings=settings)

    def patched(settings: dict[str, Any], decision: str = "accept", *names: str) -> dict[str, Any]:
        files = "".join(f"*** Add File: {name}\n+one\n" for name in names or ("new.txt",))
        patch = f"*** Begin Patch\n{files}*** End Patch\n"
        call = {"type": "custom_tool_call", "name": "apply_patch", "call_id": "call_1", "input": patch}
        told = conversation([{"items": [call]}, GREETING, GREETING], [{**GO, "decide": {"*": decision}}, NEXT], settings=settings)
        return {**told, "model": "gpt-5.5"}

    def two_patches(*decisions: str) -> dict[str, Any]:
        calls = [patched({}, "", f"{n}.txt")["script"][0]["items"][0] for n in range(2)]
        script = [*({"items": [{**call, "call_id": f"call_{n}"}]} for n, call in enumerate(calls)), GREETING, GREETING]
        steps = [{**GO, "decide": {f"call_{n}": decision for n, decision in enumerate(decisions)}}, NEXT]
        return {**conversation(script, steps, settings=ASKING), "model": "gpt-5.5"}

    def patches(before: list[str], texts: list[tuple[str, dict[str, Any]]], *declined: int) -> dict[str, Any]:
        """Return a scenario that adds files in a first turn, and makes patches in a second one, each with its result."""
        first = "".join(f"*** Add File: {name}\n+one\n" for name in before)
        calls = [
            {**patched({})["script"][0]["items"][0], "input": f"*** Begin Patch\n{text}*** End Patch\n", "call_id": f"call_{n}"}
            for n, (text, _) in enumerate([(first, {}), *texts])
        ]
        (opening, *others) = [
            {"items": [{**call, "result": told}]} for call, (_, told) in zip(calls, [("", {}), *texts], strict=True)
        ]
        decide = {**{f"call_{n}": "decline" for n in declined}, "*": "accept"}
        told = conversation(
            [opening, GREETING, *others, GREETING],
            [{**GO, "decide": {"*": "accept"}}, {**NEXT, "decide": decide}],
            settings={**FREE, "approvalPolicy": "untrusted"},
        )
        return {**told, "model": "gpt-5.5"}

    def added(name: str) -> tuple[str, dict[str, Any]]:
        return f"*** Add File: {name}\n+one\n", {}

    def deleted(name: str) -> tuple[str, dict[str, Any]]:
        return f"*** Delete File: {name}\n", {"changes": {name: {"type": "delete", "content": "one\n"}}}

    def moved(name: str, to: str, old: str = "one", new: str = "two") -> tuple[str, dict[str, Any]]:
        lines = f"-{old}\n+{new}\n"
        texts = {"unified_diff": f"@@ -1 +1 @@\n{lines}", "old": f"{old}\n", "new": f"{new}\n"}
        change = {name: {"type": "update", "move_path": None if name == to else to, **texts}}
        head = f"*** Update File: {name}\n" + ("" if name == to else f"*** Move to: {to}\n")
        return f"{head}@@\n{lines}", {"changes": change}

    failed = {"success": False, "stderr": "Failed to write"}

    def answered(answer: Any) -> dict[str, Any]:
        call = {"type": "function_call", "name": "weather", "arguments": {"city": "Rome"}, "call_id": "call_1"}
        told = conversation([{"items": [call]}, GREETING], [{**GO, "answer": {"*": answer}}], settings={"dynamicTools": [TOOL]})
        return {**told, "experimental": True}

    def unanswered(told: dict[str, Any]) -> dict[str, Any]:
        (first, *others) = told["conversation"]["steps"]
        refused = {**first, "error": {"code": -32000, "message": "There are no dialogs."}}
        return {**told, "conversation": {**told["conversation"], "steps": [refused, *others]}}

    def raw(*replies: Any) -> dict[str, Any]:
        script = [{"items": each if isinstance(each, list) else [each]} for each in replies]
        return {**conversation([*script, GREETING], [GO, NEXT], settings=FREE, raw=True), "experimental": True}

    line = ("echo hi; printf a", "hi\na", 0)
    rules = [{"acceptWithExecpolicyAmendment": {"execpolicy_amendment": [word]}} for word in ("echo", "printf")]
    parts = conversation(
        [{"items": [command(f"call_{n}", *line, **ESCALATED)]} for n in range(3)] + [GREETING],
        [{**GO, "decide": {f"call_{n}": rule for n, rule in enumerate(rules)}}],
        settings=ASKING,
    )
    risky = conversation([{"items": [command("call_1", "rm -rf nothing", "", 0)]}, GREETING], [GO], settings=FREE)
    forks = [{"load": "thread/fork"}, {"call": "thread/list", "params": {"sourceKinds": ["cli"]}}, {"call": "thread/unarchive"}]
    limits_read = {"call": "account/rateLimits/read"}
    thought = {"type": "reasoning", "summary": ["**One** and", "two"], "content": ["raw thought"]}
    search = {"type": "web_search_call", "query": "codex"}
    cited = "It is <oai-mem-citation>1</oai-mem-citation>so, a < b."
    gone = {"type": "function_call", "name": "shell_command", "arguments": {"command": "ls"}, "call_id": "call_1"}
    limits = {"x-codex-primary-used-percent": "12.5", "x-codex-primary-window-minutes": "300"}
    archive = {"call": "thread/archive", "then": "thread/archived"}
    unarchive = {"call": "thread/unarchive", "then": "thread/unarchived"}
    renamed = {"call": "thread/name/set", "params": {"name": "Mine"}, "then": "thread/name/updated"}
    read = {"call": "thread/read", "params": {"includeTurns": True}}
    old = {"call": "newConversation"}
    image = {"type": "image", "url": "data:image/png;base64,AAAA"}
    mention, skill = {"type": "mention", "name": "a", "path": "app://a"}, {"type": "skill", "name": "b", "path": "/no/SKILL.md"}
    listing = {"call": "thread/list"}
    far = {"input": [{"type": "image", "url": "HTTPS://example.com/a.png"}]}
    leave = {"call": "thread/unsubscribe"}
    nobody = {"call": "thread/unsubscribe", "params": {"threadId": "00000000-0000-7000-8000-000000000000"}}
    ephemeral = {"load": "thread/fork", "params": {"ephemeral": True, "excludeTurns": True}}
    name = {"call": "thread/name/set", "params": {"name": "Mine"}}
    of_fork = [{**each, "thread": 1} for each in (read, {"call": "thread/read"}, {"call": "thread/unarchive"}, name)]
    given = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": " From elsewhere."}]}
    elsewhere = {"load": "thread/resume", "params": {"history": [given]}}

    def tiers(*names: str | None) -> dict[str, Any]:
        """Return a scenario whose thread, turns and forks name service tiers; a resume shows that of a turn."""
        steps: list[Any] = [GO]
        for name in names:
            chosen = {"params": {"serviceTier": name}}
            steps += [{"load": "thread/fork", **chosen}, {**NEXT, **chosen}, {"load": "thread/resume"}]
        return conversation([{**GREETING, "times": "always"}], [*steps, NEXT], settings={"serviceTier": None})

    def written(key: str, value: Any, **more: Any) -> dict[str, Any]:
        return {"call": "config/value/write", "params": {"keyPath": key, "value": value, "mergeStrategy": "replace", **more}}

    def able(told: dict[str, Any]) -> dict[str, Any]:
        return {**told, "experimental": True}

    return {
        "rich": conversation(
            [{"items": [thought, search, cited], "delta": 5, "headers": limits}, {"items": ["Ok."], "usage": None}], [GO, NEXT]
        ),
        "command": ran({}, FREE, "accept"),
        "accepted": ran(ESCALATED, ASKING, "accept"),
        "accepted-for-session": ran(ESCALATED, ASKING, "acceptForSession"),
        "amended": ran(ESCALATED, ASKING, {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo", "hi"]}}),
        "amended-by-nothing": ran(ESCALATED, ASKING, {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": []}}, "accept"),
        "declined": ran(ESCALATED, ASKING, "decline"),
        "nonsense": ran(ESCALATED, ASKING, "nonsense"),
        "cancelled": ran(ESCALATED, ASKING, "cancel", "accept"),
        "forbidden": ran(ESCALATED, {"approvalPolicy": "never"}, "accept"),
        "unanswered": unanswered(ran(ESCALATED, ASKING, "accept")),
        "untrusted": ran({}, {"approvalPolicy": "untrusted"}, "accept"),
        "dangerous": risky,
        "patch": patched(FREE),
        "patch-unanswered": unanswered(patched(ASKING)),
        "patch-accepted": patched(ASKING),
        "patch-accepted-below": patched(ASKING, "accept", "a/b/c.txt"),
        "patch-accepted-beside": patched(ASKING, "accept", "a/b/c.txt", "new.txt"),
        "patch-declined": patched(ASKING, "decline"),
        "patch-cancelled": patched(ASKING, "cancel"),
        "patch-accepted-and-declined": two_patches("accept", "decline"),
        "patch-declined-and-accepted": two_patches("decline", "accept"),
        "patches-undone": patches(
            ["z.txt"], [added("b.txt"), added("a.txt"), deleted("a.txt"), deleted("b.txt"), deleted("z.txt")]
        ),
        "patches-moved": patches(
            ["m.txt"],
            [
                moved("m.txt", "z.txt"),
                moved("m.txt", "a.txt"),
                added("b.txt"),
                moved("a.txt", "a.txt", "two", "three"),
                moved("b.txt", "c.txt"),
                added("m.txt"),
            ],
            1,
        ),
        "patch-failed": patches(["z.txt"], [added("b.txt"), (added("z.txt/c.txt")[0], failed), added("d.txt")]),
        "amended-in-part": parts,
        "dynamic": answered({"contentItems": [{"type": "inputText", "text": "sunny"}], "success": True}),
        "dynamic-invalid": answered({"output": "sunny", "success": True}),
        "dynamic-unanswered": unanswered(answered({})),
        "kept": conversation([GREETING], [GO, *forks, limits_read], settings={"approvalPolicy": "untrusted"}),
        "dynamic-at-once": at_once([False, True, False], [1, 0]),
        "dynamic-interrupted": at_once([False, False, False], [2, 0]),
        "unknown-tool": conversation([{"items": [gone]}, GREETING], [GO]),
        "failed": conversation([{"status": 500, "error": {"message": "oops"}}, GREETING], [GO, NEXT]),
        "refused": conversation([{"status": 401, "error": {"message": "no"}}], [GO]),
        "refused-blank": conversation([{"status": 502, "error": {"message": " "}}, {"status": 404, "body": " no "}], [GO, NEXT]),
        "refused-empty": conversation([{"status": 403, "body": " "}], [GO]),
        "full": conversation([{"items": [{"type": "failed", "code": "context_length_exceeded", "message": "long"}]}], [GO]),
        "incomplete": conversation([{"items": ["a", {"type": "incomplete", "reason": "max_output_tokens"}]}], [GO]),
        "retried": {**conversation([{"items": ["a"], "fault": "cut_before_completed"}, GREETING], [GO]), "retries": 1},
        "raw": raw([thought, search, cited], command("call_1", *HI)),
        "history": {
            **conversation(
                [{**GREETING, "times": "always"}], [GO, elsewhere, archive, unarchive, elsewhere, {**NEXT, "thread": 1}]
            ),
            "experimental": True,
        },
        "interrupted": conversation(
            [{"items": ["a", {"type": "wait", "ms": 8000}, "never"]}, GREETING],
            [{**GO, "interrupt": "item/agentMessage/delta"}, NEXT],
        ),
        "interrupted-after-text": able(
            conversation(
                [{"items": ["a", command("call_1", *HI, **ESCALATED)]}, GREETING],
                [{**GO, "interrupt": "item/commandExecution/requestApproval"}, NEXT],
                settings=ASKING,
            )
        ),
        "failed-after-text": able(
            conversation([{"items": ["a", {"type": "incomplete", "reason": "max_output_tokens"}]}, GREETING], [GO, NEXT])
        ),
        "steered": conversation(
            [{"items": [command("call_1", *HI, **ESCALATED)]}, GREETING],
            [{**GO, "first": [("turn/steer", "More."), ("turn/start", "And more.")]}],
            settings=ASKING,
        ),
        "unsubscribed": able(
            conversation(
                [{**GREETING, "times": "always"}],
                [GO, leave, leave, nobody, {"load": "thread/resume"}, archive, leave, unarchive, leave],
            )
        ),
        "ephemeral": able(
            conversation(
                [{**GREETING, "times": "always"}],
                [GO, {"load": "thread/fork", "params": {"ephemeral": True}}, ephemeral, {**NEXT, "thread": 1}, *of_fork, listing],
            )
        ),
        "inputs": conversation(
            [{**GREETING, "times": "always"}],
            [{"input": []}, {"text": "  "}, listing, {"input": [image, mention, skill]}, {"text": " b "}, listing, read],
        ),
        "trimmed": conversation([GREETING], [{"text": " \t b \n c "}, listing]),
        "named": conversation(
            [GREETING],
            [
                GO,
                {**renamed, "params": {"name": " a\n b "}},
                {"call": "thread/name/set", "params": {"name": " "}},
                archive,
                {"call": "thread/name/set", "params": {"name": "Too late"}},
                unarchive,
            ],
        ),
        "far-image": conversation(
            [GREETING],
            [
                {"call": "turn/start", "params": far},
                {"call": "turn/steer", "params": {**far, "expectedTurnId": "x"}},
                GO,
            ],
        ),
        "unread": conversation(
            [{"status": 400, "error": {"message": "no"}}, GREETING],
            [{"call": "thread/read"}, GO, read, NEXT, {"call": "thread/read"}],
        ),
        "loaded-again": able(
            conversation(
                [{**GREETING, "times": "always"}],
                [
                    *(GO, archive, unarchive, {"load": "thread/resume"}),
                    *(NEXT, archive, unarchive, {"load": "thread/resume", "params": {"excludeTurns": True}}),
                ],
            )
        ),
        "tiers": {**tiers(*TIERS), "model": "gpt-5.5"},
        "tiers-of-an-unknown-model": tiers(*TIERS),
        "patch-of-an-unknown-model": {**patched(FREE), "model": "gpt-5.2-codex"},
        "settings-kept": able(
            conversation(
                [{**GREETING, "times": "always"}],
                [
                    *({**GO, "params": {"effort": "high"}}, {"load": "thread/fork"}, archive, read, unarchive),
                    *({"load": "thread/resume"}, {"load": "thread/fork", "params": {"sandbox": "read-only"}}, archive, unarchive),
                    *({"load": "thread/resume", "params": {"model": "gpt-5.5"}}, archive, unarchive),
                    {"load": "thread/resume", "params": {"serviceTier": None, "config": {"model_reasoning_effort": "low"}}},
                    NEXT,
                ],
                settings={**FREE, "approvalPolicy": "untrusted", "model": "gpt-5.6-sol", "serviceTier": "flex"},
            )
        ),
        "config-written": conversation(
            [GREETING],
            [
                *(written(key, value) for key, value in (("model", "gpt-5.6-sol"), ("", 1), ("model", None))),
                written("a.b", {"c": 1}, expectedVersion="sha256:old"),
                {"call": "config/batchWrite", "params": {"edits": [EDIT]}},
                {"call": "permissionProfile/list"},
                *(GO, {"load": "thread/fork"}),
            ],
        ),
        "threads": conversation(
            [{**GREETING, "times": "always"}],
            [GO, read, {"call": "thread/list"}, renamed, {"load": "thread/fork"}, archive, unarchive, old],
        ),
        "review": reviewed(
            [{"type": "custom", "instructions": "Look."}, {"type": "commit", "sha": "abcdef012345", "title": "T"}],
            [{"items": [command("call_1", *HI), "Now."]}, {"items": ["Good."]}, FAILED],
            [{"call": "thread/turns/list"}, read],
            {"target": {"type": "custom", "instructions": "a"}, "delivery": "detached"},
            "gpt-5.5",
        ),
        "compaction": compacted(
            [GREETING, FAILED, FULL, {"items": ["A summary."]}],
            [GO, COMPACT, COMPACT, GO, MODELS[1], read, {"load": "thread/fork"}],
            None,
            0,
            raw=True,
        ),
        # A server that reads the file of a thread names the last turn that counted tokens, and not the last turn, which failed.
        "usage-of-a-file": able(
            conversation(
                [GREETING, FAILED, GREETING, {"items": ["a"], "fault": "cut_before_completed"}, GREETING],
                [
                    *(GO, GO, {"load": "thread/fork"}, {"load": "thread/resume"}, archive, unarchive, {"load": "thread/resume"}),
                    *(GO, GO, {"load": "thread/fork"}),
                ],
            )
        ),
        "compaction-full": compacted(
            [GREETING, *BUSY, GREETING, FAILED],
            [COMPACT, GO, GO, GO, read],
            1000,
            0,
            raw=False,
        ),
        **later_lists.examples(),
        **later_commands.examples(),
        **later_wrong.examples(),
    }


def main() -> None:
    """Record them all, or those that are named."""
    wanted = sys.argv[1:]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with BackendProcess() as backend, tempfile.TemporaryDirectory() as root:
        both = Both(Path(root), VERSION, backend, "fake-codex")
        for name, scenario in conversations().items():
            if wanted and name not in wanted:
                continue
            frames, url = both.record(scenario)
            (FOLDER / f"{name}.json").write_text(json.dumps({**scenario, "url": url}, ensure_ascii=False, indent=1) + "\n")
            origin = {"rpc.client": "authored", "rpc.server": "recorded"}
            header = Header(VERSION, bundle_of(VERSION), f"scripted-later/{name}", origin)
            with CassetteWriter(FOLDER / f"{name}.ndjson", header, Redactor(paths={"/root": "/home/user"})) as writer:
                for frame in frames:
                    writer.write(frame)
            sys.stdout.write(f"{name}: {len(frames)} frames\n")


if __name__ == "__main__":
    main()
