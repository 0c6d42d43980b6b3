"""`FAKE_CODEX_STATE`: threads and the position in the script go on in a new process, whatever ended the last one.

What the real 0.92.0 does over one CODEX_HOME is compared in tests/real/differential/test_processes.py.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client, SubjectFailure
from tests.fakes.scripted.conversing import initialize
from tests.fakes.scripted.test_scripted import FAKE, texts

COMMAND = {"type": "function_call", "name": "shell_command", "arguments": {"command": "make all"}, "call_id": "c1", "result": {}}
ASKED = "item/commandExecution/requestApproval"


class Processes:
    """Processes of fake-codex with one home, one script and one state folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.state, self.ledger_file = root, root / "state", root / "ledger.ndjson"
        self.home = HermeticHome(root, "http://127.0.0.1:39999")
        self.made: list[Client] = []

    def environ(self, script: Any = None, **env: str) -> dict[str, str]:
        environ = {**self.home.env, "FAKE_CODEX_STATE": str(self.state), "FAKE_CODEX_LEDGER": str(self.ledger_file)}
        if script is not None:
            (self.root / "script.json").write_text(json.dumps(script))
            environ["FAKE_CODEX_SCRIPT"] = str(self.root / "script.json")
        return {**environ, **env}

    def start(self, script: Any = None, **env: str) -> Client:
        client = Client([FAKE, "app-server"], env=self.environ(script, **env), cwd=str(self.home.work), timeout=60)
        self.made.append(client)
        initialize(client)
        return client

    def exec(self, script: Any, *words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        command = [FAKE, "exec", "--json", "--skip-git-repo-check", *words]
        environ = self.environ(script, **env)
        return subprocess.run(command, input=b"", capture_output=True, env=environ, cwd=self.home.work, timeout=60)

    def ledger(self) -> list[Any]:
        return [json.loads(line) for line in self.ledger_file.read_text().splitlines()]

    @property
    def files(self) -> list[Path]:
        return sorted((self.state / "threads").iterdir())


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    found = Processes(tmp_path)
    yield found
    for client in found.made:
        client.stop()


def turn(client: Client, thread: str, text: str = "Go.") -> list[str]:
    begin = len(client.timeline)
    client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    client.notification("turn/completed", threadId=thread)
    return texts([frame.value for frame in client.timeline[begin:]])


def opened(client: Client, **params: Any) -> str:
    thread: str = client.request("thread/start", params)["thread"]["id"]
    return thread


def prompts(client: Client, thread: str) -> list[str]:
    turns = client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    return [each["items"][0]["content"][0]["text"] for each in turns]


def listed(client: Client, **params: Any) -> list[str]:
    return [thread["id"] for thread in client.request("thread/list", params)["data"]]


def refusal(done: subprocess.CompletedProcess[bytes]) -> tuple[int, str]:
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stderr.decode()


# -- threads --------------------------------------------------------------------------------------------------------------


def test_a_new_process_goes_on(processes: Processes) -> None:
    """The thread, its input for the model, and the turn of the script that is next."""
    first = processes.start(["one", "two"])
    thread = opened(first, baseInstructions="Base.")
    assert turn(first, thread, "First.") == ["one"]
    before = first.request("thread/read", {"threadId": thread, "includeTurns": True})
    first.close()
    second = processes.start(["one", "two"])
    assert second.request("thread/read", {"threadId": thread, "includeTurns": True}) == before
    error = second.request_error("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "x"}]})
    assert error["message"] == f"thread not found: {thread}"
    assert second.request("thread/resume", {"threadId": thread})["thread"]["preview"] == "First."
    assert turn(second, thread, "Second.") == ["two"]
    bodies = [entry["body"] for entry in processes.ledger()]
    assert [body["instructions"] for body in bodies] == ["Base.", "Base."]
    assert [item["content"][0]["text"] for item in bodies[1]["input"] if "environment" not in str(item)] == [
        "First.", "one", "Second.",
    ]  # fmt: skip
    assert [entry["n"] for entry in processes.ledger()] == [1, 2]


def test_without_the_variable_nothing_is_kept(processes: Processes) -> None:
    first = processes.start(["one", "two"], FAKE_CODEX_STATE="")
    thread = opened(first)
    assert turn(first, thread) == ["one"]
    first.close()
    second = processes.start(["one", "two"], FAKE_CODEX_STATE="")
    assert second.request_error("thread/resume", {"threadId": thread})["message"] == f"no rollout found for thread id {thread}"
    assert turn(second, opened(second)) == ["one"]
    assert not processes.state.exists()


def test_archived_rolled_back_and_ephemeral_threads(processes: Processes) -> None:
    first = processes.start(["a", "b", "c", "d"])
    thread, away, passing = opened(first), opened(first), opened(first, ephemeral=True)
    for text in ("One", "Two"):
        turn(first, thread, text)
    turn(first, away)
    turn(first, passing)
    first.request("thread/rollback", {"threadId": thread, "numTurns": 1})
    first.request("thread/archive", {"threadId": away})
    first.close()
    second = processes.start(["a", "b", "c", "d"])
    assert (listed(second), listed(second, archived=True), prompts(second, thread)) == ([thread], [away], ["One"])
    assert "error" in second.call("thread/resume", {"threadId": passing})
    second.request("thread/unarchive", {"threadId": away})
    second.close()
    third = processes.start(["a", "b", "c", "d"])
    assert listed(third) == [away, thread]
    assert third.request("thread/fork", {"threadId": thread})["thread"]["preview"] == "One"


def test_v1_goes_on_with_a_thread_of_v2(processes: Processes) -> None:
    first = processes.start(["one", "two"])
    thread = opened(first)
    turn(first, thread, "First.")
    first.close()
    second = processes.start(["one", "two"])
    said = second.request("resumeConversation", {"conversationId": thread})["initialMessages"]
    assert [each["type"] for each in said] == ["user_message", "token_count", "agent_message", "token_count"]
    assert second.request("listConversations", {})["items"][0]["conversationId"] == thread
    second.request("addConversationListener", {"conversationId": thread})
    assert turn(second, thread) == ["two"]


def test_an_amendment_is_kept(processes: Processes) -> None:
    script = [{"items": [COMMAND]}, "a", {"items": [COMMAND]}, "b"]
    first = processes.start(script)
    thread = opened(first, approvalPolicy="untrusted")
    first.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "Go."}]})
    decision = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["make"]}}
    first.reply(first.server_request(ASKED), {"decision": decision})
    first.notification("turn/completed", threadId=thread)
    first.close()
    second = processes.start(script)
    turn(second, opened(second, approvalPolicy="untrusted"))  # hangs if the command is asked about
    assert not any(isinstance(f.value, dict) and f.value.get("method") == ASKED for f in second.timeline)


# -- the script -------------------------------------------------------------------------------------------------------------


def test_another_script_begins_at_its_first_turn(processes: Processes) -> None:
    first = processes.start(["one", "two"])
    thread = opened(first)
    turn(first, thread)
    first.close()
    second = processes.start(["three"])
    second.request("thread/resume", {"threadId": thread})
    assert turn(second, thread) == ["three"]
    second.close()
    third = processes.start(["one", "two"])
    assert turn(third, opened(third)) == ["two"]


def test_answers_are_used_up_across_processes(processes: Processes) -> None:
    script = {"turns": [], "answers": {"fuzzyFileSearch": [{"result": {"files": [1]}}, {"result": {"files": [2]}}]}}
    asked = ("fuzzyFileSearch", {"query": "a", "roots": []})
    for wanted in ([1], [2], []):
        client = processes.start(script)
        assert client.request(*asked)["files"] == wanted
        client.close()


# -- two at once --------------------------------------------------------------------------------------------------------------


def test_two_processes_share_the_script_and_keep_each_others_threads(processes: Processes) -> None:
    script = [{"items": [f"answer {n}"]} for n in range(40)]
    clients = [processes.start(script), processes.start(script)]
    threads = [opened(client) for client in clients]
    said: list[str] = []
    for n in range(10):
        for client, thread in zip(clients, threads, strict=True):
            client.post("turn/start", {"threadId": thread, "input": [{"type": "text", "text": f"Go {n}."}]})
        for client, thread in zip(clients, threads, strict=True):
            client.notification("turn/completed", threadId=thread)
    for client in clients:
        said += texts([frame.value for frame in client.timeline])
        assert sorted(listed(client)) == sorted(threads)
        client.close()
    assert sorted(said) == sorted(f"answer {n}" for n in range(20))
    third = processes.start(script)
    assert [prompts(third, thread) for thread in threads] == [[f"Go {n}." for n in range(10)]] * 2
    assert len(processes.ledger()) == 20


def test_two_processes_with_one_thread_show_the_turns_of_both(processes: Processes) -> None:
    """As with the real server: each model gets what its process knew when it loaded the thread, until that is loaded again."""
    script = [{"match": "Go", "items": ["ok"], "times": "always"}]
    one, two = processes.start(script), processes.start(script)
    thread = opened(one)
    turn(one, thread, "Go 1")
    two.request("thread/resume", {"threadId": thread})
    for client, text in ((two, "Go 2"), (one, "Go 3"), (two, "Go 4")):
        turn(client, thread, text)
    wanted = ["Go 1", "Go 2", "Go 3", "Go 4"]
    assert [prompts(one, thread), prompts(two, thread)] == [wanted, wanted]
    assert "Go 3" not in json.dumps(processes.ledger()[-1]["body"])
    two.request("thread/resume", {"threadId": thread})
    turn(two, thread, "Go 5")
    assert all(text in json.dumps(processes.ledger()[-1]["body"]) for text in wanted)


# -- what ends a process --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["killed-in-turn", "dies-in-turn", "dies-in-line"])
def test_a_process_that_dies_in_a_turn_leaves_what_was_said(processes: Processes, fault: str) -> None:
    """The turn is there as soon as it has its prompt, and the next process goes on."""
    found = []
    for seed in range(4):
        first = processes.start([{"items": ["one"], "times": "always"}], FAKE_CODEX_FAULT=f"{fault}:{seed}")
        thread = opened(first)
        with pytest.raises(SubjectFailure):
            turn(first, thread, "First.")
        second = processes.start([{"items": ["one"], "times": "always"}])
        second.request("thread/resume", {"threadId": thread})
        found.append(prompts(second, thread))
        assert turn(second, thread, "Second.") == ["one"]
        second.close()
    assert ["First."] in found
    assert all(prompt in ([], ["First."]) for prompt in found)


def test_a_process_that_is_killed_after_a_turn_has_kept_it(processes: Processes) -> None:
    """What the client has read is in the folder."""
    for n in range(5):
        client = processes.start([{"items": ["one"], "times": "always"}])
        thread = opened(client)
        turn(client, thread, f"Turn {n}.")
        client.stop()
    last = processes.start([{"items": ["one"], "times": "always"}])
    previews = [thread["preview"] for thread in last.request("thread/list", {})["data"]]
    assert previews == [f"Turn {n}." for n in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("torn", [b'{"meta":{"upd', b"\xff\xfe", b"{"])
def test_a_line_that_was_not_written_to_its_end_is_cut_off(processes: Processes, torn: bytes) -> None:
    first = processes.start(["one", "two"])
    thread = opened(first)
    turn(first, thread, "First.")
    first.close()
    [file] = processes.files
    with file.open("ab") as opened_file:
        opened_file.write(torn)
    second = processes.start(["one", "two"])
    second.request("thread/resume", {"threadId": thread})
    turn(second, thread, "Second.")
    second.close()
    third = processes.start(["one", "two"])
    assert prompts(third, thread) == ["First.", "Second."]
    assert [json.loads(line) for line in file.read_bytes().splitlines()]


BROKEN = {
    "not JSON": (lambda lines: [lines[0], b"{broken\n", *lines[1:]], "is broken at line 2"),
    "another value": (lambda lines: [b"[]\n", *lines], "is broken at line 1 (no object with `meta`)"),
    "a member of another type": (lambda lines: [lines[0].replace(b'"drop":[0,0]', b'"drop":5')], "is broken at line 1 (a member"),
    "a member is missing": (lambda lines: [b'{"meta":{}}\n'], "is broken at line 1 (a member"),
    "another format": (lambda lines: [lines[0].replace(b'"format":1', b'"format":2')], "is broken at line 1"),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("command", ["app-server", "exec"])
def test_a_broken_file_is_a_sentence(processes: Processes, case: str, command: str) -> None:
    first = processes.start(["one"])
    turn(first, opened(first))
    first.close()
    [file] = processes.files
    breaks, sentence = BROKEN[case]
    file.write_bytes(b"".join(breaks(file.read_bytes().splitlines(keepends=True))))
    if command == "exec":
        code, said = refusal(processes.exec(["one"], "Go."))
    else:
        messages = [{"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "a", "version": "1"}}}]
        messages.append({"id": 2, "method": "thread/list", "params": {}})
        given = "".join(json.dumps(message) + "\n" for message in messages).encode()
        environ = processes.environ(["one"])
        code, said = refusal(
            subprocess.run([FAKE, "app-server"], input=given, capture_output=True, env=environ, cwd=processes.root, timeout=60)
        )
    assert (code, f"the state file {file} {sentence}" in said, "choose another folder" in said) == (2, True, True), said


@pytest.mark.parametrize(
    ("name", "text"), [("script", "{"), ("script", '{"used": 5}'), ("rules", "[]"), ("rules", '{"prefixes": 1}')]
)
def test_a_broken_small_file_is_a_sentence(processes: Processes, name: str, text: str) -> None:
    refusal(processes.exec(["one", "two"], "Go."))
    [file] = [path for path in processes.state.iterdir() if path.name.startswith("script-")]
    (file if name == "script" else processes.state / "rules.json").write_text(text)
    code, said = refusal(processes.exec(["one", "two"], "Go."))
    assert (code, "is broken (" in said, "delete it, or choose" in said) == (2, True, True), said


def test_a_folder_that_cannot_be_used_is_a_sentence(processes: Processes) -> None:
    processes.state.write_text("a file")
    for command in (["app-server"], ["exec", "--skip-git-repo-check", "x"]):
        environ = processes.environ(["one"])
        done = subprocess.run([FAKE, *command], input=b"", capture_output=True, env=environ, cwd=processes.root, timeout=60)
        code, said = refusal(done)
        assert (code, said.splitlines()) == (
            2,
            [
                f"fake-codex: the state folder {processes.state} cannot be used (Not a directory); choose another folder for "
                "FAKE_CODEX_STATE."
            ],
        )


# -- codex exec ---------------------------------------------------------------------------------------------------------------


def test_exec_goes_on_in_a_process_per_turn(processes: Processes) -> None:
    script = ["one", "two", "three"]
    first = [json.loads(line) for line in processes.exec(script, "First.").stdout.splitlines()]
    thread = first[0]["thread_id"]
    second = [json.loads(line) for line in processes.exec(script, "resume", thread, "Second.").stdout.splitlines()]
    assert (second[0]["thread_id"], second[2]["item"]["text"]) == (thread, "two")
    assert second[-1]["usage"] == {"input_tokens": 20, "cached_input_tokens": 0, "output_tokens": 2}
    client = processes.start(script)
    assert (listed(client), listed(client, sourceKinds=["exec"])) == ([], [thread])
    assert client.request("thread/resume", {"threadId": thread})["thread"]["source"] == "exec"
    assert turn(client, thread, "Third.") == ["three"]
    assert prompts(client, thread) == ["First.", "Second.", "Third."]


def test_exec_resumes_the_last_thread_of_its_directory(processes: Processes, tmp_path: Path) -> None:
    script = [{"items": ["a"], "times": "always"}]

    def thread(*words: str) -> Any:
        return json.loads(processes.exec(script, *words).stdout.splitlines()[0])["thread_id"]

    here, there = thread("Here."), thread("-C", str(tmp_path), "There.")
    assert thread("resume", "--last", "On.") == here
    # The last one is told by its second and then by its id: so whichever second it is, it is the one that is resumed now.
    assert thread("resume", there, "On.") == there
    assert thread("resume", "--last", "--all", "On.") == there
    assert thread("resume", "no-such-thread", "On.") not in (here, there)
    assert len(processes.files) == 3


def test_two_execs_at_once(processes: Processes) -> None:
    script = [f"answer {n}" for n in range(8)]
    command = [FAKE, "exec", "--json", "--skip-git-repo-check", "Go."]
    environ = processes.environ(script)
    running = [
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environ, cwd=processes.home.work)
        for _ in range(8)
    ]
    said = [json.loads(process.communicate(timeout=60)[0].splitlines()[2])["item"]["text"] for process in running]
    assert sorted(said) == script
    assert len(processes.files) == 8
    assert sorted(entry["n"] for entry in processes.ledger()) == list(range(1, 9))


def test_the_ledger_begins_anew_with_the_script(processes: Processes) -> None:
    processes.ledger_file.write_text("old\n")
    processes.exec(["one", "two"], "Go.")
    processes.exec(["one", "two"], "Go.")
    assert [entry["turn_of_script"] for entry in processes.ledger()] == [0, 1]


def test_a_thread_that_another_process_archives(processes: Processes) -> None:
    """It stays loaded here and takes turns; but it is neither listed nor resumed."""
    script = [{"items": ["ok"], "times": "always"}]
    one, two = processes.start(script), processes.start(script)
    thread = opened(one)
    turn(one, thread)
    two.request("thread/resume", {"threadId": thread})
    one.request("thread/archive", {"threadId": thread})
    assert (listed(two), turn(two, thread)) == ([], ["ok"])
    assert "no rollout found" in two.request_error("thread/resume", {"threadId": thread})["message"]
    assert listed(one, archived=True) == [thread]


def test_only_the_folder_is_written(processes: Processes) -> None:
    before = sorted(os.listdir(processes.home.home))
    refusal(processes.exec(["one"], "Go."))
    assert sorted(os.listdir(processes.home.home)) == before
    assert {path.name.partition("-")[0] for path in processes.state.iterdir()} == {"threads", "lock", "script"}
