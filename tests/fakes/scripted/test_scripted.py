"""The scripted fake as a program: what it is asked, what it would have asked its model, and what it leaves alone."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from codex_fakes.scripted.state.model import Model
from codex_replay.core.cassette.frames import Frame
from codex_replay.core.wire.json_text import dumps
from codex_replay.plugin.base.checking import judge, make_checkers
from codex_replay.protocol.refusals import load_methods
from codex_replay.shell.codex.home import HermeticHome
from codex_replay.shell.rpc.client import Client, SubjectFailure
from tests.fakes.scripted.conversing import Conversation, initialize
from tests.fakes.scripted.in_process import InProcess

FAKE = str(Path(sys.executable).with_name("fake-codex"))
NOBODY = "00000000-0000-7000-8000-000000000000"
TOOL = {"name": "weather", "description": "d", "inputSchema": {"type": "object", "properties": {}}}


class Started:
    """One fake-codex: its client, its ledger, and shortcuts for what the tests do."""

    def __init__(self, root: Path, script: Any, *args: str, config: Callable[[str], str] | None = None, **env: str) -> None:
        self.home = HermeticHome(root, "http://127.0.0.1:39999")
        if config is not None:  # before the start: the fake may read the file while it starts
            file = self.home.home / "config.toml"
            file.write_text(config(file.read_text(encoding="utf-8")), encoding="utf-8")
        self.ledger_file = root / "ledger.ndjson"
        environ = {**self.home.env, "FAKE_CODEX_LEDGER": str(self.ledger_file), **env}
        if script is not None:
            (root / "script.json").write_text(json.dumps(script), encoding="utf-8")
            environ["FAKE_CODEX_SCRIPT"] = str(root / "script.json")
        self.client = Client([FAKE, *args, "app-server"], env=environ, cwd=str(self.home.work), timeout=60)
        initialize(self.client)

    def thread(self, **settings: Any) -> str:
        opened: str = self.client.request("thread/start", settings)["thread"]["id"]
        return opened

    def turn(self, thread: str, text: str = "Go.", **params: Any) -> list[Any]:
        """Run a turn to its end; return the server's messages about it."""
        begin = len(self.client.timeline)
        self.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}], **params})
        self.client.notification("turn/completed", threadId=thread)
        return [frame.value for frame in self.client.timeline[begin:] if frame.sender == "server"]

    def ledger(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.ledger_file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Started]]:
    made: list[Started] = []

    def make(script: Any = None, *args: str, **env: Any) -> Started:
        made.append(Started(tmp_path / str(len(made)), script, *args, **env))
        return made[-1]

    yield make
    for started in made:
        started.client.stop()


def texts(messages: list[Any]) -> list[str]:
    items = [m["params"]["item"] for m in messages if of(m, "item/completed")]
    return [item["text"] for item in items if item["type"] == "agentMessage"]


def of(message: Any, method: str) -> bool:
    return isinstance(message, dict) and message.get("method") == method


def status(messages: list[Any]) -> Any:
    return messages[-1]["params"]["turn"]["status"]


# -- the model's side ---------------------------------------------------------------------------------------------------


def test_without_a_script_every_turn_gets_one_short_reply(start: Callable[..., Started]) -> None:
    fake = start()
    thread = fake.thread()
    assert [texts(fake.turn(thread, text)) for text in ("one", "two")] == [["Hello from fake-codex."]] * 2
    assert [entry["answer"] for entry in fake.ledger()] == ["default", "default"]
    assert fake.client.close() == 0


def test_two_equal_turns_are_two_calls(start: Callable[..., Started]) -> None:
    fake = start(["a", "b"])
    thread = fake.thread()
    assert [texts(fake.turn(thread, "same")) for _ in range(2)] == [["a"], ["b"]]
    first, second = fake.ledger()
    assert (first["turn_of_script"], second["turn_of_script"]) == (0, 1)
    assert second["body"]["input"][-3:] == [user("same"), assistant("a"), user("same")]


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def assistant(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def test_the_ledger_has_what_the_request_would_have_had(start: Callable[..., Started]) -> None:
    fake = start(["ok"])
    thread = fake.thread(developerInstructions="Be brief.", baseInstructions="You are a fake.", dynamicTools=[TOOL])
    schema = {"type": "object"}
    fake.turn(thread, "Go.", outputSchema=schema, effort="high", summary="detailed", model="gpt-5.2")
    (entry,) = fake.ledger()
    body = entry["body"]
    assert list(body) == [
        "model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "stream",
        "include", "prompt_cache_key", "text",
    ]  # fmt: skip
    assert (body["model"], body["instructions"]) == ("gpt-5.2", "You are a fake.")
    assert body["reasoning"] == {"effort": "high", "summary": "detailed"}
    assert body["text"]["format"]["schema"] == schema
    assert body["input"][0] == {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]}
    assert body["input"][-1] == user("Go.")
    assert body["tools"][-1]["name"] == "weather"
    assert (entry["thread"], body["prompt_cache_key"]) == (thread, thread)


def test_the_outputs_of_calls_go_back_in_call_order(start: Callable[..., Started]) -> None:
    calls = [{"type": "function_call", "name": "weather", "arguments": {"city": str(i)}, "call_id": f"c{i}"} for i in range(2)]
    shell = {"type": "function_call", "name": "shell_command", "arguments": {"command": "ls"}, "call_id": "s"}
    fake = start([{"items": [calls[0], {**shell, "result": {"output": "f\n", "exit_code": 2}}, calls[1]]}, "ok"])
    thread = fake.thread(dynamicTools=[TOOL])
    told = {"api": "v2", "steps": []}
    conversation = Conversation(fake.client, told, str(fake.home.work))
    conversation.threads = [thread]
    step = {"text": "Go.", "answer": {"c0": {"output": "sun", "success": True}, "c1": {"nonsense": 1}}}
    conversation.begin(step)
    conversation.finish(step)
    outputs = [item for item in fake.ledger()[1]["body"]["input"] if item["type"] == "function_call_output"]
    assert [item["output"] for item in outputs] == [
        "sun",
        "Exit code: 2\nWall time: 0 seconds\nOutput:\nf\n",
        "dynamic tool response was invalid",
    ]


def test_a_turn_is_chosen_by_its_marker_and_a_miss_is_told(start: Callable[..., Started]) -> None:
    fake = start([{"match": "beta", "items": ["for beta"]}])
    thread = fake.thread()
    assert texts(fake.turn(thread, "beta")) == ["for beta"]
    missed = fake.turn(fake.thread(config={"model_providers.mock.stream_max_retries": 0}), "other")
    assert status(missed) == "failed"
    assert "The only turn of the script is used" in missed[-1]["params"]["turn"]["error"]["message"]
    assert fake.ledger()[-1]["status"] == 501


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("{", "is not JSON"),
        ('{"turns": [{"item": []}]}', 'did you mean "items"'),
        ('[{"items": ["x"], "fault": "nonesuch"}]', "is not a fault"),
    ],
)
def test_a_script_that_is_none_is_a_sentence(script: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(script)
    done = run(INITIALIZE + b'{"id":2,"method":"thread/start","params":{}}\n', FAKE_CODEX_SCRIPT=str(file))
    assert (done.returncode, said in done.stderr.decode(), b"Traceback" in done.stderr) == (2, True, False)


def test_a_script_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    done = run(b"", FAKE_CODEX_SCRIPT=str(tmp_path / "none.json"))
    assert done.returncode == 2
    assert f"the script {tmp_path / 'none.json'} cannot be read (No such file or directory); check" in done.stderr.decode()


@pytest.mark.parametrize("sent", [b"", b"no JSON\n", b'{"id":1,"method":"initialize","params":{}}\n'])
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("{", "is not JSON"),
        ('{"turns": [{"item": []}]}', 'did you mean "items"'),
        ('["x"]', "the ledger /proc/x/y cannot be written (No such file or directory); choose another file"),
    ],
)
def test_what_is_wrong_is_told_though_the_client_asked_nothing(sent: bytes, script: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text(script)
    env = {"FAKE_CODEX_LEDGER": "/proc/x/y"} if "ledger" in said else {}
    done = run(sent, FAKE_CODEX_SCRIPT=str(file), **env)
    assert (done.returncode, done.stderr.decode().count(said), b"Traceback" in done.stderr) == (2, 1, False)


def test_a_script_that_is_not_json_is_told_before_any_answer(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text("{")
    done = run(INITIALIZE, FAKE_CODEX_SCRIPT=str(file))
    assert (done.returncode, done.stdout) == (2, b"")


@pytest.mark.parametrize("sent", [True, False])
def test_a_ledger_that_cannot_be_written_is_a_sentence(sent: bool) -> None:
    done = run(INITIALIZE if sent else b"", FAKE_CODEX_LEDGER="/proc/x/y")
    assert done.returncode == 2
    assert done.stderr.decode().count("the ledger /proc/x/y cannot be written (No such file or directory); choose another") == 1


def test_a_script_may_be_a_pipe(tmp_path: Path) -> None:
    """As `FAKE_CODEX_SCRIPT=<(make-script)` gives it, which can be read once: what is told is what stood in it."""
    reader, writer = os.pipe()
    os.write(writer, b'{"turns": [{"item": []}]}')
    os.close(writer)
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAKE_CODEX_SCRIPT": f"/dev/fd/{reader}"}
    command = [FAKE, "app-server"]
    done = subprocess.run(command, input=INITIALIZE, capture_output=True, env=environ, pass_fds=[reader], timeout=120)
    os.close(reader)
    assert (done.returncode, b'did you mean "items"' in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("path", "reason"), [("/proc/x/y", "cannot be written (No such file"), ("/dev/full", "failed (No space")]
)
def test_a_capture_that_cannot_be_written_is_a_sentence(path: str, reason: str) -> None:
    done = run(INITIALIZE, FAKE_CODEX_CAPTURE=path)
    assert (done.returncode, done.stderr.count(b"\n"), b"Traceback" in done.stderr) == (2, 1, False)
    assert done.stderr.decode().startswith(f"fake-codex: {path}")
    assert reason in done.stderr.decode()


INITIALIZE = b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"c","version":"1"}}}\n'


def run(sent: bytes, **env: str) -> subprocess.CompletedProcess[bytes]:
    environ = {"PATH": os.environ["PATH"], "HOME": "/nowhere", **env}
    return subprocess.run([FAKE, "app-server"], input=sent, capture_output=True, env=environ, timeout=120)


# -- the client's side --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("turn/start", {}, "Invalid request: missing field `threadId`"),
        ("turn/start", {"threadId": 5}, "Invalid request: invalid type: integer `5`, expected a string"),
        ("turn/start", {"threadId": NOBODY, "input": 5}, "Invalid request: invalid type: integer `5`, expected a sequence"),
        ("turn/start", {"threadId": NOBODY, "input": [{"type": "text"}]}, "Invalid request: missing field `text`"),
        ("turn/start", {"threadId": NOBODY, "input": []}, f"thread not found: {NOBODY}"),
        (
            "turn/start",
            {"threadId": "x", "input": []},
            "invalid thread id: invalid character: expected an optional prefix of `urn:uuid:` followed by [0-9a-fA-F-], "
            "found `x` at 1",
        ),
        ("sendUserMessage", {"conversationId": NOBODY, "items": []}, f"conversation not found: {NOBODY}"),
        ("sendUserMessage", {"conversationId": NOBODY, "items": [{"type": "text"}]}, "Invalid request: missing field `data`"),
        ("addConversationListener", {"conversationId": NOBODY}, f"thread not found: {NOBODY}"),
        ("removeConversationListener", {"subscriptionId": NOBODY}, f"subscription not found: {NOBODY}"),
        ("thread/read", {"threadId": NOBODY}, f"thread not loaded: {NOBODY}"),
        ("thread/resume", {"threadId": NOBODY}, f"no rollout found for thread id {NOBODY}"),
        ("thread/start", {"cwd": 5}, "Invalid request: invalid type: integer `5`, expected a string"),
        ("thread/start", {"dynamicTools": [{"name": "x"}]}, "Invalid request: missing field `description`"),
        ("initialize", {"clientInfo": {"name": "x", "version": "1"}}, "Already initialized"),
        ("initialize", {"clientInfo": {}}, "Invalid request: missing field `name`"),
        ("thread/list", [], "Invalid request: invalid length 0, expected struct ThreadListParams with 6 elements"),
        ("thread/list", {"cursor": "x"}, "invalid cursor: x"),
        ("model/list", {"cursor": 5}, "Invalid request: invalid type: integer `5`, expected a string"),
        ("userInfo", {"x": 1}, "Invalid request: invalid type: map, expected unit"),
        ("gitDiffToRemote", {"cwd": "/x"}, 'failed to compute git diff to remote for cwd: "/x"'),
        ("command/exec", {"command": []}, "command must not be empty"),
        ("mcpServer/oauth/login", {"name": "x"}, "No MCP server named 'x' found."),
    ],
)
def test_bad_input_is_refused_as_the_real_server_refuses_it(
    method: str, params: Any, message: str, start: Callable[..., Started]
) -> None:
    assert start().client.request_error(method, params) == {"code": -32600, "message": message}


#: What the methods need that need something; for the others `{}` (or nothing) will do.
NEEDED: dict[str, dict[str, Any]] = {
    "skills/config/write": {"path": "/x/SKILL.md", "enabled": False},
    "review/start": {"threadId": "THREAD", "target": {"type": "custom", "instructions": "Look."}},
    "mcpServer/oauth/login": {"name": "x"},
    "account/login/start": {"type": "chatgpt"},
    "account/login/cancel": {"loginId": NOBODY},
    "feedback/upload": {"classification": "bug", "includeLogs": False},
    "command/exec": {"command": ["ls"]},
    "execOneOffCommand": {"command": ["ls"]},
    "config/value/write": {"keyPath": "model", "value": "gpt-5.2", "mergeStrategy": "replace"},
    "config/batchWrite": {"edits": []},
    "gitDiffToRemote": {"cwd": "/x"},
    "loginApiKey": {"apiKey": "k"},
    "cancelLoginChatGpt": {"loginId": NOBODY},
    "fuzzyFileSearch": {"query": "x", "roots": ["/"]},
    "turn/start": {"threadId": "THREAD", "input": []},
    "turn/interrupt": {"threadId": "THREAD", "turnId": "0"},
    "thread/rollback": {"threadId": "THREAD", "numTurns": 1},
    **{f"thread/{name}": {"threadId": "THREAD"} for name in ("resume", "fork", "archive", "read", "unarchive")},
    "addConversationListener": {"conversationId": "THREAD"},
    "removeConversationListener": {"subscriptionId": NOBODY},
    "sendUserMessage": {"conversationId": "THREAD", "items": []},
    "sendUserTurn": {
        "conversationId": "THREAD", "items": [], "cwd": "/", "approvalPolicy": "never", "sandboxPolicy": {"type": "read-only"},
        "model": "gpt-5.2", "summary": "auto",
    },
    "interruptConversation": {"conversationId": "THREAD"},
    "archiveConversation": {"conversationId": "THREAD", "rolloutPath": "/x"},
    "getConversationSummary": {"conversationId": "THREAD"},
    "resumeConversation": {"conversationId": "THREAD"},
    "forkConversation": {"conversationId": "THREAD"},
}  # fmt: skip
#: With an idle thread these are not answered, by the real server neither.
UNANSWERED = {"turn/interrupt", "interruptConversation"}


@pytest.mark.parametrize("method", sorted(load_methods()))
def test_every_method_is_answered_in_a_valid_form(method: str, start: Callable[..., Started]) -> None:
    """Each of the 55 methods gets a result that the bundle takes for valid, or a refusal in the real server's code."""
    fake = start([{"items": ["x"], "times": "always"}])
    thread = fake.thread()
    fake.turn(thread)
    params = json.loads(json.dumps(NEEDED.get(method, {})).replace("THREAD", thread))
    if method in UNANSWERED:
        asked = fake.client.post(method, params)
        fake.turn(thread, "Go on.")
        assert asked not in [message.get("id") for message in fake.client.messages() if "method" not in message]
        return
    if method == "initialize":
        params = {"clientInfo": {"name": "x", "version": "1"}}
    answer = fake.client.call(method, params if load_methods()[method] != "unit" else None)
    if "error" in answer:
        assert answer["error"]["code"] in (-32600, -32603), answer
    else:
        assert [found.text for found in judge(fake.client.timeline, make_checkers("0.92.0")) if found.blame == "subject"] == []
    assert fake.client.close() == 0


def test_a_timed_action_that_fails_does_not_end_the_server(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A defect of the fake: one sentence, and answers after it."""
    server = InProcess(None, tmp_path, str(tmp_path))
    server.session.after(0, lambda: print(1 + "1"))  # type: ignore[operator]
    server.session.advance()
    server.send({"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "a", "version": "1"}}})
    said = capfd.readouterr().err
    assert said.startswith("fake-codex: a timed action stops, because fake-codex failed: TypeError"), said
    assert server.timeline[-1].value["id"] == 1


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ('["ok", "\\ud83d."]', "turns[1] has half of a surrogate pair"),
        ('[{"items": [{"type": "text", "text": "a\\uDE00"}]}]', "turns[0].items[0].text has half of a surrogate pair"),
        ('{"turns": [], "git": {"\\ud83d": 1}}', "a key of git has half of a surrogate pair"),
        ('["\\ud83d\\ude00", "\\\\ud83d"]', None),
        (
            '[{"fault": {"name": "huge_event", "bytes": 1e15}}]',
            "turns[0].fault.bytes must be a number of bytes, from 0 to 268435456",
        ),
        ('[{"fault": {"name": "cut", "after": -1}}]', "turns[0].fault.after must be a whole number, 0 or more, not -1."),
        (
            '[{"fault": {"name": "http_429", "retry_after": []}}]',
            "turns[0].fault.retry_after must be a string, or a number of seconds",
        ),
    ],
)
def test_what_cannot_be_sent_is_refused(tmp_path: Path, script: str, sentence: str | None) -> None:
    path = tmp_path / "script.json"
    path.write_text(script)
    with pytest.raises(ValueError, match=re.escape(sentence)) if sentence else nullcontext():
        Model(str(path)).load()


def test_a_script_answers_for_the_machine(start: Callable[..., Started]) -> None:
    """`answers`: by their params, in order, one for ever; a refusal with its code; the switches of skills go on top."""
    skill = {"name": "s", "description": "d", "path": "/s/SKILL.md", "scope": "user", "enabled": True}
    fake = start(
        {
            "turns": [],
            "git": {"sha": "abc", "branch": "main", "originUrl": None},
            "account": "chatgpt",
            "answers": {
                "command/exec": [
                    {"params": {"command": ["two"]}, "result": {"exitCode": 2, "stdout": "2", "stderr": ""}},
                    {"result": {"exitCode": 1, "stdout": "1", "stderr": ""}},
                    {"error": {"code": -32603, "message": "exec failed: no"}},
                ],
                "gitDiffToRemote": {"result": {"sha": "abc", "diff": "d"}},
                "skills/list": {"result": {"data": [{"cwd": "/w", "skills": [skill], "errors": []}]}},
                "fuzzyFileSearch": {"error": "no"},
            },
        }
    )
    ask = fake.client.request
    assert ask("command/exec", {"command": ["one"]})["exitCode"] == 1
    assert ask("command/exec", {"command": ["two"]})["exitCode"] == 2
    assert fake.client.request_error("command/exec", {"command": ["x"]}) == {"code": -32603, "message": "exec failed: no"}
    free = {"command": ["x"], "sandboxPolicy": {"type": "dangerFullAccess"}}
    assert ask("command/exec", free) == {"exitCode": 0, "stdout": "", "stderr": ""}
    assert [ask("gitDiffToRemote", {"cwd": "/w"})["diff"] for _ in range(2)] == ["d", "d"]
    assert fake.client.request_error("fuzzyFileSearch", {"query": "", "roots": []})["message"] == "no"
    assert ask("skills/config/write", {"path": "/s/SKILL.md", "enabled": False}) == {"effectiveEnabled": False}
    assert ask("skills/list", {})["data"][0]["skills"][0]["enabled"] is False
    assert ask("thread/start", {})["thread"]["gitInfo"] == {"sha": "abc", "branch": "main", "originUrl": None}
    assert ask("userInfo", None) == {"allegedUserEmail": "fake@codex-replay.invalid"}


def test_the_configuration_is_written_in_memory_only(start: Callable[..., Started]) -> None:
    """What is written holds for config/read and the next thread, and not for the file."""
    fake = start(["x"])
    before = (fake.home.home / "config.toml").read_bytes()
    edit = {"keyPath": "model", "value": "gpt-5.2", "mergeStrategy": "replace"}
    old = fake.client.request("config/read", {})
    version = old["origins"]["model"]["version"]
    written = fake.client.request("config/value/write", {**edit, "expectedVersion": version})
    assert (written["status"], written["version"] != version) == ("ok", True)
    conflict = fake.client.request_error("config/value/write", {**edit, "expectedVersion": version})
    assert conflict["data"] == {"config_write_error_code": "configVersionConflict"}
    assert fake.client.request("config/read", {})["config"]["model"] == "gpt-5.2"
    assert fake.client.request("thread/start", {})["model"] == "gpt-5.2"
    assert (fake.home.home / "config.toml").read_bytes() == before
    assert sorted(path.name for path in fake.home.home.rglob("*")) == ["config.toml"]


def test_a_blank_prompt_is_not_shown_again(start: Callable[..., Started]) -> None:
    fake = start([{"items": ["x"], "times": "always"}])
    thread = fake.thread()
    fake.turn(thread, " \n")
    read = fake.client.request("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
    assert read["turns"][0]["items"][0]["content"] == []


def test_threads_are_kept_as_long_as_the_process(start: Callable[..., Started]) -> None:
    fake = start([{"items": ["x"], "times": "always"}])
    ask = fake.client.request
    first, second = fake.thread(), fake.thread()
    assert ask("thread/list", {}) == {"data": [], "nextCursor": None}
    fake.turn(first, "first")
    fake.turn(second, "second")
    assert [t["preview"] for t in ask("thread/list", {})["data"]] == ["second", "first"]
    page = ask("thread/list", {"limit": 1})
    assert [t["preview"] for t in ask("thread/list", {"limit": 1, "cursor": page["nextCursor"]})["data"]] == ["first"]
    read = ask("thread/read", {"threadId": first, "includeTurns": True})["thread"]
    assert [item["type"] for item in read["turns"][0]["items"]] == ["userMessage", "agentMessage"]
    fork = ask("thread/fork", {"threadId": first})["thread"]
    assert fork["turns"] == read["turns"]
    ask("thread/archive", {"threadId": first})
    assert set(ask("thread/loaded/list", {})["data"]) == {second, fork["id"]}
    assert [t["id"] for t in ask("thread/list", {"archived": True})["data"]] == [first]
    assert fake.client.request_error("turn/start", {"threadId": first, "input": []})["message"] == f"thread not found: {first}"
    ask("thread/unarchive", {"threadId": first})
    assert ask("thread/resume", {"threadId": first})["thread"]["turns"] == read["turns"]
    rolled = ask("thread/rollback", {"threadId": first, "numTurns": 1})["thread"]
    assert rolled["turns"] == []


def test_events_wait_for_a_listener_and_two_listeners_compete(start: Callable[..., Started]) -> None:
    fake = start(["one", "two"])
    ask = fake.client.request
    opened = ask("newConversation", {})["conversationId"]
    items = [{"type": "text", "data": {"text": "x"}}]
    ask("sendUserMessage", {"conversationId": opened, "items": items})
    assert not [m for m in fake.client.messages() if "event" in str(m.get("method"))]
    listener = ask("addConversationListener", {"conversationId": opened})["subscriptionId"]
    fake.client.notification("turn/completed")
    ask("addConversationListener", {"conversationId": opened})
    begin = len(fake.client.timeline)
    ask("sendUserMessage", {"conversationId": opened, "items": items})
    fake.client.notification("turn/completed")
    seen = [f.value["method"] for f in fake.client.timeline[begin:] if "method" in f.value and f.sender == "server"]
    assert seen.count("codex/event/task_complete") == 1
    assert ask("removeConversationListener", {"subscriptionId": listener}) == {}


def test_an_interrupt_of_nothing_is_not_answered_and_a_wrong_turn_still_interrupts(start: Callable[..., Started]) -> None:
    fake = start([{"items": ["x", {"type": "gate", "name": "g"}]}, "after"])
    thread = fake.thread()
    idle = fake.client.post("turn/interrupt", {"threadId": thread, "turnId": "0"})
    fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "x"}]})
    fake.client.notification("codex/event/agent_message")
    second = fake.client.post("turn/interrupt", {"threadId": thread, "turnId": "nonsense"})
    assert fake.client.notification("turn/completed")["turn"]["status"] == "interrupted"
    assert [fake.client.reply_to(i)["result"] for i in (idle, second)] == [{}, {}]
    assert texts(fake.turn(thread)) == ["after"]


def test_a_reply_that_is_an_error_hangs_the_turn_until_it_is_interrupted(start: Callable[..., Started]) -> None:
    call = {"type": "function_call", "name": "shell_command", "arguments": {"command": "touch x"}, "call_id": "c"}
    fake = start([{"items": [call]}, "after"])
    thread = fake.thread(approvalPolicy="untrusted")
    fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "x"}]})
    request = fake.client.server_request("item/commandExecution/requestApproval")
    fake.client.send({"id": request["id"], "error": {"code": -32000, "message": "no"}})
    with pytest.raises(SubjectFailure):
        fake.client.notification("turn/completed", timeout=0.2)
    fake.client.request("turn/interrupt", {"threadId": thread, "turnId": "0"})
    assert fake.client.notification("turn/completed")["turn"]["status"] == "interrupted"


def test_config_toml_and_options_are_obeyed(start: Callable[..., Started]) -> None:
    fake = start(None, "-c", 'model="gpt-5.2"', "-c", "sandbox_mode=workspace-write")
    opened = fake.client.request("thread/start", {})
    assert (opened["model"], opened["modelProvider"], opened["sandbox"]["type"]) == ("gpt-5.2", "mock", "workspaceWrite")


def test_retries_are_those_of_the_provider(start: Callable[..., Started]) -> None:
    fake = start([{"status": 500, "body": "x", "times": 4}, "ok"])
    provider = "model_providers.mock."
    thread = fake.thread(config={provider + "stream_max_retries": 1, provider + "request_max_retries": 1})
    messages = fake.turn(thread)
    assert [m["params"]["willRetry"] for m in messages if of(m, "error")] == [True, False]
    assert (len(fake.ledger()), status(messages)) == (4, "failed")
    assert texts(fake.turn(thread)) == ["ok"]


def test_what_it_says_is_valid_and_known(start: Callable[..., Started]) -> None:
    thought = {"type": "reasoning", "summary": ["s"], "content": ["c"]}
    fake = start([{"items": [thought, {"type": "web_search_call", "query": "q"}, "ok"]}])
    fake.turn(fake.thread())
    for method in ("model/list", "account/read", "getAuthStatus", "skills/list", "mcpServerStatus/list", "thread/loaded/list"):
        fake.client.request(method, {})
    assert [finding.text for finding in judge(fake.client.timeline, make_checkers("0.92.0"))] == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell_command", {"command": 5}),
        ("shell_command", "[1]"),
        ("shell", {"command": "x"}),
        ("update_plan", {"plan": "x"}),
        ("update_plan", {"plan": [5]}),
        ("apply_patch", {"input": None}),
        ("view_image", {"path": {}}),
        ("list_mcp_resources", "5"),
        ("request_user_input", {"questions": 5}),
    ],
)
def test_calls_of_any_shape_are_answered(name: str, arguments: Any, start: Callable[..., Started]) -> None:
    fake = start([{"items": [{"type": "function_call", "name": name, "arguments": arguments, "call_id": "c"}]}, "ok"])
    assert texts(fake.turn(fake.thread())) == ["ok"]
    assert fake.ledger()[1]["body"]["input"][-1]["call_id"] == "c"


def test_a_lone_surrogate_is_no_message(start: Callable[..., Started]) -> None:
    fake = start()
    fake.client.send(b'{"id":9,"method":"thread/start","params":{"cwd":"\\ud800"}}\n')
    fake.turn(fake.thread())
    assert 9 not in [message.get("id") for message in fake.client.messages()]


# -- races --------------------------------------------------------------------------------------------------------------


PLANNED = [{"type": "function_call", "name": "update_plan", "arguments": {"plan": []}, "call_id": "p"}, "text"]


def raced(start: Callable[..., Started], pace: str) -> list[Frame]:
    fake = start([{"items": PLANNED}, "ok"], FAKE_CODEX_PACE=pace)
    fake.turn(fake.thread())
    assert fake.client.close() == 0
    return fake.client.timeline


def order(frames: list[Frame]) -> list[str]:
    return [str(frame.value.get("method") or "reply") for frame in frames if frame.sender == "server"]


def test_a_race_is_another_right_order(start: Callable[..., Started]) -> None:
    from codex_replay.protocol.recordings.compare import equal_after_normalisation

    calm, *runs = (raced(start, pace) for pace in ("fast", "race:0", "race:1", "race:2", "race:3"))
    assert all(equal_after_normalisation(calm, one) for one in runs)
    assert len({tuple(order(one)) for one in runs}) > 1
    assert order(raced(start, "race:1")) == order(runs[1])


@pytest.mark.parametrize("pace", ["race:", "race:x", "slow", "0x", "x"])
def test_a_pace_that_is_none_is_a_sentence(pace: str) -> None:
    done = run(b"", FAKE_CODEX_PACE=pace)
    assert (done.returncode, b"FAKE_CODEX_PACE" in done.stderr) == (2, True)


def test_the_start_up_path_loads_nothing_slow() -> None:
    """What `fake-codex app-server` with a script has loaded when it answers initialize."""
    roots = [str(Path(__file__).parents[3] / name) for name in ("harness", "fake_server")]
    code = (
        f"import sys; sys.path += {roots!r}; before = set(sys.modules)\n"
        "from codex_fakes.scripted.server import ScriptedServer\n"
        "from codex_replay.core.cassette.frames import Frame\n"
        "server = ScriptedServer({}, [])\n"
        f"server.line(Frame(0, 0.0, 'rpc', 'client', raw={INITIALIZE!r}))\n"
        "assert server.waiting > 0\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "codex_fakes.scripted.server" in loaded
    assert [
        m for m in loaded if not m.startswith(("codex_replay", "codex_fakes")) and m not in ("__future__", "_json", "select")
    ] == []


def test_a_huge_reply_does_not_stop_the_client_from_being_heard(start: Callable[..., Started]) -> None:
    fake = start([{"items": ["x" * 400_000], "delta": 10}, "after"])
    thread = fake.thread()
    fake.client.request("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "x"}]})
    fake.client.notification("item/agentMessage/delta")
    fake.client.post("turn/interrupt", {"threadId": thread, "turnId": "0"})
    assert fake.client.notification("turn/completed")["turn"]["status"] == "interrupted"
    deltas = sum(of(message, "item/agentMessage/delta") for message in fake.client.messages())
    assert deltas < 40_000
    assert dumps(fake.client.messages()[-1])
