"""The parts of a report, made of data: traces, JUnit, Markdown, rows side by side."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.core.redact.redactor import Redactor
from codex_replay.plugin.app_server import trace
from codex_replay.plugin.base.naming import name_of_node
from codex_replay.plugin.reporting.spec import place, source_of
from codex_replay.plugin.reporting.spool import Spool, key_of
from codex_replay.plugin.reporting.trace import without_torn
from codex_replay.report import data
from codex_replay.report.junit import junit
from codex_replay.report.markdown import markdown
from codex_replay.report.side_by_side import align, values
from codex_replay.shell.http.backend_process import BackendError

ROOT = Path(__file__).resolve().parents[2]


def case(name: str = "a", **given: Any) -> data.Case:
    base: dict[str, Any] = {
        "id": f"s/m/{name}",
        "suite": "s",
        "module": "m",
        "case": name,
        "nodeid": f"suites/s/m.py::test_{name}",
    }
    base |= {"title": name, "spec": None, "outcome": "passed", "seconds": 0.1, "message": "", "details": "", "expected": None}
    return {**base, "actual": None, "recorded": [], "again": "pytest x", "story": None, **given}  # type: ignore[return-value]


def report_of(*cases: data.Case, **given: Any) -> data.Report:
    base: dict[str, Any] = {"report": 2, "verdict": data.verdict(cases), "subject": {"app-server": "fake"}, "codex": "0.92.0"}
    base |= {"profile": "default", "profiles": ["default"], "record": "none", "validated": True, "command": "pytest"}
    return {**base, "started": "2026-01-01T00:00:00Z", "seconds": 1.0, "cases": list(cases), **given}  # type: ignore[return-value]


def test_junit_holds_what_xml_has_no_form_for() -> None:
    nasty = "".join(map(chr, range(32))) + "\x7f\ud800\ufffe\uffff]]>&<\"'\U0001f600"
    text = junit(
        report_of(case(nasty, outcome="failed", message=nasty, details=nasty), case("k", outcome="known", message="why"))
    )
    root = ElementTree.fromstring(text.encode())
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None
    assert "]]>&<\"'\U0001f600" in str(failure.text)
    assert "\ufffd" in str(failure.get("message"))
    skipped = root.find("testsuite/testcase/skipped")
    assert skipped is not None
    assert skipped.get("message") == "known: why"


def test_markdown_is_short_whatever_failed() -> None:
    spec: data.Spec = {"check": "c", "document": "d.md", "section": "1 | x", "line": None, "text": "t"}
    cases = [case(f"c{i}", outcome="failed", message="m" * 5000, spec=spec, again="pytest " + "x" * 900) for i in range(500)]
    text = markdown(report_of(*cases), 20_000)
    assert len(text) <= 20_000
    assert "more failures: see report.json" in text
    assert text.count("pytest xxx") < 100
    assert len(markdown(report_of(*cases))) <= 60_000


def test_markdown_takes_no_word_for_markup() -> None:
    evil = "<script>x</script> @everyone [a](http://e) `code` **b** | c\n## head"
    text = markdown(report_of(case(outcome="failed", message=evil, again="pytest 'a``b'\n")))
    line = next(line for line in text.splitlines() if "script" in line)
    assert "\\<script>x\\</script> \\@everyone [a\\](http\\://e) \\`code\\` \\*\\*b\\*\\* \\| c ## head" in line
    assert "```pytest 'a``b'```" in text
    assert not any(line.startswith("## head") for line in text.splitlines())


def frames(*said: tuple[str, dict[str, Any]]) -> list[Frame]:
    lines = [json.dumps(value, separators=(",", ":")).encode() + b"\n" for _, value in said]
    return [Frame(n, n / 10, "rpc", said[n - 1][0], "msg", line) for n, line in enumerate(lines, 1)]


ASK = {"id": 1, "method": "turn/start", "params": {"model": "x"}}


def test_union_keys_finds_what_differs_is_missing_and_is_new() -> None:
    recorded = frames(
        ("client", ASK), ("server", {"id": 1, "result": {"n": "a"}}), ("server", {"method": "warned", "params": {}})
    )
    same, found = align(recorded, recorded)
    assert found == []
    assert [frame["mark"] for frame in same] == [None, None, None]
    assert values(found) == (None, None)
    live = frames(("client", ASK), ("server", {"id": 1, "result": {"n": "b"}}), ("server", {"method": "new", "params": {}}))
    told, found = align(recorded, live)
    assert [(frame["what"], frame["mark"]) for frame in told] == [
        ("turn/start #1", None),
        ("result #1 of turn/start", "different"),
        ("warned", "missing"),
        ("new", "unexpected"),
    ]
    assert told[1]["paths"] == ["$.result.n"]
    assert json.loads(str(told[1]["expected"]))["result"] == {"n": "a"}
    expected, actual = values(found)
    assert {str(expected)[-3:], str(actual)[-3:]} <= {'"a"', '"b"', "{}}", "one", "}"} or expected or actual


def test_a_seam_of_which_only_requests_were_kept_is_told_and_not_compared() -> None:
    def seen(n: int, method: str) -> Frame:
        return Frame(n, n / 10, "http", "client", "request", payload={"method": method, "path": "/", "headers": []}, conn=1)

    recorded = [*frames(("client", ASK)), seen(2, "POST")]
    live = [*frames(("client", ASK)), seen(2, "GET")]
    told, found = align(recorded, live, only=("rpc",))
    assert ([frame["mark"] for frame in told], found) == ([None, None], [])
    assert {frame["mark"] for frame in align(recorded, live)[0]} != {None}


def test_a_ledger_that_cannot_be_read_is_told() -> None:
    def ledger() -> list[dict[str, Any]]:
        raise BackendError("The backend at http://127.0.0.1:1 does not answer, says jo.secret@corp.example.org.")

    upstream = SimpleNamespace(ledger=ledger, started=0.0, url="http://127.0.0.1:1/s/x")
    server = SimpleNamespace(timeline=[], recorded=None, upstream=upstream, started=0.0, redactor=Redactor())
    live, cut = trace._live(server)  # type: ignore[arg-type]
    ((frame,), _) = align([], live, only=("rpc",))
    assert (frame["seam"], frame["kind"], cut) == ("http", "close", False)
    assert "The requests to the model cannot be read: The backend at" in frame["text"]
    assert "jo.secret" not in frame["text"]


def test_of_a_run_that_ended_early_not_all_that_never_came_is_told() -> None:
    recorded = frames(("client", ASK), *(("server", {"method": f"m{i}", "params": {}}) for i in range(100)))
    told, _ = align(recorded, recorded[:1])
    assert [frame["mark"] for frame in told] == [None, *["missing"] * 20]
    assert told[-1]["what"].endswith("(and 80 more frames that never came)")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("{'jwt': 'eyJhbG...dWIiOiJ1c2VyLTQyIi.c2lnbmF0dXJl', 'n': 1}", "{'jwt': '[cut]', 'n': 1}"),
        ("'0123456789abcdef01...' and jo.secret@cor...", "'[cut]' and [cut]"),
        ("{'key': 'sk-pro...CdEfGhIjKlMn', 'n': 1} or sk-p...", "{'key': '[cut]', 'n': 1} or [cut]"),
        ("a task-..., the risk-free...", "a task-..., the risk-free..."),
        ("got {...}, recorded some words... of Chapter 12...and on", "got {...}, recorded some words... of Chapter 12...and on"),
        ("/tmp/cassettes/app_server/test_it.nd...", "/tmp/cassettes/app_server/test_it.nd..."),
        ("assert 'kubectl crea...fhr15!KKS46wz' == 'x'", "assert 'kubectl [cut]' == 'x'"),
        ("'argocd login...rd PENU679vycp7'", "'argocd login...rd [cut]'"),
        ("Connecting to 127.0.0.1:4000... OK", "Connecting to 127.0.0.1:4000... OK"),
    ],
)
def test_half_a_secret_is_left_out(text: str, left: str) -> None:
    assert without_torn(text) == left


def test_many_ellipses_cost_little_time() -> None:
    """Where a word is searched from each of its letters, this takes an hour."""
    assert without_torn("a..." * 50_000) == "a..." * 50_000


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("docs/lite-client.md, Some readings", ("docs/lite-client.md", "Some readings")),
        ("docs/lite-client.md", ("docs/lite-client.md", "")),
        ("known behaviour of the real service", ("known behaviour of the real service", "")),
    ],
)
def test_the_place_of_a_check(where: str, found: tuple[str, str]) -> None:
    assert place(where) == found


@pytest.mark.parametrize(
    ("docstring", "found"),
    [
        ("X.\n\nSource: REAL-82, REAL-84. Silence.", (["REAL-82", "REAL-84"], "")),
        ("It is so. (SCHEMA-07)", (["SCHEMA-07"], "")),
        ("X. Source: docs/contract/real-0.92.md, section 4. Silence.", ([], "The real Codex 0.92.0")),
        ("Source: the bundle's EventMsg (terminal_interaction).", ([], "the schema bundle")),
        ("No word of where it comes from.", ([], "")),
    ],
)
def test_the_source_of_a_case(docstring: str, found: tuple[list[str], str]) -> None:
    assert source_of(docstring) == found


def test_the_name_of_a_test_that_cannot_be_asked() -> None:
    name = name_of_node("suites/app_server/conversation/test_v1.py::TestX::test_hello[a b-1]", ROOT)
    assert str(name) == "app_server/test_v1/hello-a_b-1"


def test_a_process_that_is_killed_leaves_the_stories_that_it_has_told(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    frame: Any = {"text": 'a "frames": [1]\n'}
    for node in ("one", "two"):
        spool.put(node, {"source": "this run", "cassette": None, "truncated": False, "frames": [frame]})
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    first = len(whole) // 2
    for size in range(first, len(whole)):
        path.write_bytes(whole[:size])
        assert list(spool.index()) == [key_of("one")], size
    path.write_bytes(whole)
    said, frames = spool.read(spool.index()[key_of("two")])
    assert said == {"key": key_of("two"), "source": "this run", "cassette": None, "truncated": False}
    assert json.loads(frames) == [frame]
