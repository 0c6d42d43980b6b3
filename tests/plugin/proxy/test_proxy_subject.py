"""What `--proxy` may name, and the parts of the `proxy` fixture: clients, ledgers, fields, vectors."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.base.subjects import BadSubject
from codex_replay.plugin.proxy.fields import fields, table
from codex_replay.plugin.proxy.http import Exchange
from codex_replay.plugin.proxy.process import free_port
from codex_replay.plugin.proxy.script import marker_of
from codex_replay.plugin.proxy.subject import parse_proxy
from codex_replay.plugin.proxy.vectors import load_vectors
from codex_replay.plugin.proxy.wire import Wire, WireFrame
from tests.plugin.proxy.runs import ALONE, LEAN, run
from tests.reference.proxy_driver import running

pytest_plugins = ["pytester"]


#: The reference that sends something all the while between the events of its streams.
KEEPS_ALIVE = """
import sys
from codex_replay.reference.proxy.__main__ import main
from tests.strength.proxy_variants.wrong_http import keeps_alive

keeps_alive(sys.argv[1].encode().decode("unicode_escape").encode(), 0.02)
sys.exit(main([]))
"""


@pytest.mark.parametrize("said", [r": ping\n\n", r"data: ping\n\n", r"data:\n\n"])
def test_comments_of_a_silent_stream_are_accepted_and_events_are_not(suite: pytest.Pytester, said: str) -> None:
    root = Path(__file__).parents[3]
    argv = ["env", f"PYTHONPATH={root}", sys.executable, "-P", "-c", KEEPS_ALIVE, said]
    suite.path.joinpath("pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\n[tool.codex-replay.proxy.awake]\ncommand = {json.dumps(shlex.join(argv))}\n"
    )
    here = ["-c", str(suite.path / "pyproject.toml"), "--rootdir", str(suite.path), "--profile", "works-on-0.92"]
    cases = [str(root / "suites" / "proxy" / "replies" / name) for name in ("test_service.py", "test_types.py")]
    result = run(suite, *here, *cases, "-k", "silent_stream or (types_of_chat and stream)")
    found, shown = result.parseoutcomes(), result.stdout.str()
    if said.startswith(":"):
        assert (found.get("failed", 0), found["passed"] >= 4) == (0, True), shown
    else:
        assert found["failed"] >= 2
        assert "To keep a connection alive, send a comment" in shown


def test_of_a_url_where_nobody_listens_it_is_said_so(suite: pytest.Pytester) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    suite.path.joinpath("pyproject.toml").write_text(
        f'[tool.pytest.ini_options]\n[tool.codex-replay.proxy.away]\nready_seconds = 1\nurl = "{url}"\n'
    )
    result = run(suite)
    result.assert_outcomes(failed=2)
    sentence = f"within 1 s: GET /v1/models gave a refused connection: no server listens at {url}. Start the proxy before the run"
    assert sentence in result.stdout.str()


def test_a_proxy_that_runs_is_attached_to_and_left_alone(suite: pytest.Pytester) -> None:
    """What needs an environment is skipped with its reason; what looks at the other seam fails."""
    with running(suite.path, PROXY_PROFILE="works-on-0.92", PROXY_API_KEY="sk-mine") as found:
        suite.path.joinpath("pyproject.toml").write_text(
            "[tool.pytest.ini_options]\n[tool.codex-replay.proxy.there]\nkey = 'sk-mine'\n"
            f"url = 'http://127.0.0.1:{found.port}/v1'\nready = '/health'\n"
        )
        suite.makepyfile(
            test_it="""
            def test_answers(proxy):
                assert proxy.chat().json["choices"][0]["message"]["content"] == "Hello."

            def test_payload(proxy):
                proxy.responses().params("newConversation")

            def test_environment(proxy):
                proxy.chat(env={"PROXY_SANDBOX_MODE": "read-only"})
            """
        )
        result = suite.runpytest_inprocess(*ALONE, "-rs")
        result.assert_outcomes(passed=1, failed=1, skipped=1)
        shown = result.stdout.str()
        assert "not verified: the environment of a proxy that is given as a URL cannot be set" in shown
        assert "The proxy must send newConversation once for this request, but sent it 0 times." in shown
        assert found.process.poll() is None


# -- the parts -------------------------------------------------------------------------------------------------------------


def test_a_name_of_the_table_is_the_default_when_it_is_the_only_one() -> None:
    rows: dict[str, Any] = {"mine": {"url": "http://127.0.0.1:1/v1/", "key": "k"}}
    found = parse_proxy(None, rows)
    assert (found.name, found.url, found.key) == ("mine", "http://127.0.0.1:1", "k")
    assert parse_proxy("reference", rows).name == "reference"
    assert parse_proxy(None, {**rows, "other": {"command": "true"}}).name == "reference"


@pytest.mark.parametrize(
    ("text", "rows", "sentence"),
    [
        ("no-such-program x", {}, "there is no such program"),
        (f"{shlex.quote(__file__)} x", {}, "test_proxy_subject.py is a file, but not executable; put its interpreter before it"),
        ("'", {}, "this is not a command line"),
        ("m", {"m": {}}, "must have either a command or a url"),
        ("m", {"m": {"comand": "true"}}, "did you mean 'command'"),
        ("m", {"m": {"command": "true", "url": "x"}}, "must have either a command or a url"),
        ("m", {"m": {"command": "true", "ping": "x"}}, "has no key 'ping'"),
        ("m", {"m": {"command": "true", "env": {"A": 1}}}, "env must be a table of strings"),
        ("m", {"m": {"command": "true", "capabilities": ["magic"]}}, "capabilities must be a list of:"),
        ("m", {"m": {"command": "true", "ready_seconds": "x"}}, "ready_seconds must be a number"),
        ("m", {"m": {"command": "true", "ready": 1}}, "ready must be a string"),
    ],
)
def test_what_is_no_proxy_is_said(text: str, rows: dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadSubject, match=sentence):
        parse_proxy(text, rows)


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (429, [("Retry-After", "2")], 2.0),
        (503, [("retry-after", "0.5")], 0.5),
        (503, [("retry-after-ms", "250")], 0.25),
        (429, [("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT")], 0.0),
        (429, [("Retry-After", "soon")], None),
        (429, [], None),
        (500, [("Retry-After", "2")], None),
    ],
)
def test_when_a_busy_proxy_wants_to_be_asked_again(status: int, headers: list[tuple[str, str]], seconds: float | None) -> None:
    assert Exchange("POST", "/", None, status=status, headers=headers).retry_after == seconds


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_a_number_of_clients_that_is_none_is_a_sentence(suite: pytest.Pytester, given: str) -> None:
    result = suite.runpytest_inprocess(*ALONE, f"--clients={given}")
    result.stderr.fnmatch_lines([f"*--clients {given}: give a number, 1 or more."])


def test_the_clients_of_a_run_go_before_those_of_the_table(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it="def test_it(proxy):\n    assert proxy.clients == 3")
    run(suite, "--clients", "3").assert_outcomes(passed=1)


def test_markers_tell_cases_apart() -> None:
    assert marker_of("a[1]") != marker_of("a[2]")
    assert marker_of("a[1]") == marker_of("a[1]")


def test_the_ledgers_of_several_children_are_one_timeline(tmp_path: Path) -> None:
    wire = Wire(tmp_path)
    (tmp_path / "wire.7").write_text(
        '{"t":1,"run":0}\n{"t":1,"got":"{\\"id\\":1,\\"method\\":\\"a\\"}"}\n{"t":3,"said":"x"}\n{"t":4,"go'
    )
    (tmp_path / "wire.8").write_text('{"t":2,"said":"{\\"id\\":1,\\"result\\":{}}"}\n')
    assert [(f.child, f.sender, f.kind) for f in wire.update()] == [
        ("7", "client", "request"),
        ("8", "server", "response"),
        ("7", "server", "other"),
    ]
    assert wire.update() == []
    with open(tmp_path / "wire.7", "a") as file:
        file.write('t":"{}"}\n')
    assert [frame.t for frame in wire.update()] == [4]


def test_the_table_of_fields_tells_the_three_verdicts() -> None:
    rows = [
        ["newConversation", "", "call", True, True, True],
        ["newConversation", "", "call", True, True, True],
        ["newConversation", "model", "value", True, True, True],
        ["newConversation", "config", "null", True, True, True],
        ["newConversation", "mode1", "value", False, False, False],
        ["thread/start", "", "call", False, True, True],
        ["thread/start", "model", "value", False, True, True],
    ]
    lines = {line.split()[0]: line.split()[1:] for line in table(rows)}
    assert lines["newConversation.model"] == ["yes", "yes", "yes", "value", "1x,", "omitted", "1x"]
    assert lines["newConversation.config"] == ["yes", "yes", "yes", "null", "1x,", "omitted", "1x"]
    assert lines["newConversation.mode1"] == ["no", "no", "no", "value", "1x,", "omitted", "1x"]
    assert lines["newConversation.cwd"] == ["yes", "-", "-", "omitted", "2x"]
    assert lines["thread/start.model"] == ["-", "yes", "yes", "value", "1x"]
    assert lines["sendUserTurn.model"] == ["yes", "-", "-"]


def test_every_field_gets_its_verdicts() -> None:
    calls = [
        {"method": "initialize", "params": {"clientInfo": {}}},
        {
            "method": "newConversation",
            "params": {"model": "m", "config": None, "dynamicTools": [], "sandbox": "no-such", "extra": 1},
        },
        {"method": "sendUserMessage", "params": {"conversationId": 5, "items": []}},
        {"method": "thread/start", "params": {"model": "m", "reasoning": {}}},
        {"method": "no/such", "params": {"a": 1}},
    ]
    frames = [WireFrame(0.0, "1", "client", json.dumps(json.dumps({"id": 1, **call})).encode()) for call in calls]
    rows = {(row[0], row[1]): row[2:] for row in fields([Exchange("POST", "/", None, frames=frames)]) if row[1]}
    assert rows == {
        ("initialize", "clientInfo"): ["value", False, False, True],
        ("newConversation", "model"): ["value", True, True, True],
        ("newConversation", "config"): ["null", True, True, True],
        ("newConversation", "dynamicTools"): ["value", True, True, False],
        ("newConversation", "sandbox"): ["value", True, False, True],
        ("newConversation", "extra"): ["value", False, True, False],
        ("sendUserMessage", "conversationId"): ["value", True, False, True],
        ("sendUserMessage", "items"): ["value", True, True, True],
        ("thread/start", "model"): ["value", False, True, True],
        ("thread/start", "reasoning"): ["value", False, True, False],
        ("no/such", "a"): ["value", False, False, False],
    }


@pytest.mark.parametrize("distributed", [False, True], ids=["alone", "xdist"])
def test_both_profiles_are_reported(suite: pytest.Pytester, distributed: bool) -> None:
    """On the terminal and as JSON, the rows of a case that failed too."""
    suite.makepyfile(
        test_it="""
        import pytest

        @pytest.mark.proxy_profile("as-specified")
        def test_one(proxy):
            assert proxy.responses().calls("thread/start")

        @pytest.mark.proxy_profile("works-on-0.92")
        def test_two(proxy):
            proxy.responses()
        """
    )
    folder = suite.path / "told"
    options = [*LEAN, "-n", "2"] if distributed else ALONE
    result = suite.runpytest_subprocess(*options, "--report", str(folder))
    result.assert_outcomes(passed=1, failed=1)
    shown = result.stdout.str()
    assert shown.index("Fields that the proxy sends to app-server (as-specified)") < shown.index(
        "Fields that the proxy sends to app-server (works-on-0.92)"
    )
    told = json.loads((folder / "proxy-fields.json").read_text(encoding="utf-8"))
    assert told["proxy"] == "reference"
    rows = {p: {(row["method"], row["field"]): row for row in found} for p, found in told["profiles"].items()}
    assert list(rows) == ["as-specified", "works-on-0.92"]
    assert rows["as-specified"]["newConversation", "model"] == {
        "method": "newConversation",
        "field": "model",
        "specified": True,
        "valid": True,
        "known": True,
        "value": 1,
        "null": 0,
        "omitted": 0,
        "calls": 1,
    }
    assert rows["works-on-0.92"]["thread/start", "ephemeral"]["specified"] is None
    assert ("newConversation", "model") not in rows["works-on-0.92"], "nothing of those calls came"
    assert json.loads((folder / "report.json").read_text(encoding="utf-8"))["proxy_fields"] == told
    if not distributed:  # the handshake of a process is seen by the first case alone
        assert rows["as-specified"]["initialize", "clientInfo"]["value"] == 1


def test_the_vectors_are_plain_and_named_once() -> None:
    vectors = load_vectors()
    assert len({vector.id for vector in vectors}) == len(vectors)
    for vector in vectors:
        assert vector.why.endswith(".")
        assert "".join(vector.chunks(7)) == vector.text
        assert not any("${" in name for outcome in vector.outcomes for name, _ in outcome.calls)
