"""What a run writes: the data of the report and its stories, JUnit and Markdown, without a secret in any of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from codex_replay.plugin.reporting.spool import Spool
from codex_replay.report import data

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
MINIATURE = ROOT / "tests" / "miniatures" / "server.py"
ALONE = ["-p", "no:xdist", "-p", "no:cacheprovider"]
SUBPROCESS = ("-p", "no:cacheprovider")
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ1c2VyLTQyIiwiZW1haWwiOiJqb0BleGFtcGxlLm9yZyJ9.c2lnbmF0dXJlLW9mLWpv"
SECRETS = {
    "bearer": "Zk3rT9vQp2LmX8sWn4Yb",
    "key": "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx",
    "jwt": JWT,
    "mail": "jo.secret@corp.example.org",
    "home": "/home/josecret/work",
}
#: What must be nowhere: of a JWT its claims and its signature (its header tells nobody anything).
PARTS = [SECRETS["bearer"], SECRETS["key"][:20], *JWT.split(".")[1:], "jo.secret", "josecret"]
CASES = """
    import pytest

    WORDS = {words!r}

    def test_good(app_server):
        "A good case; nothing is to be seen."
        app_server(bad_input=True).initialize()

    @pytest.mark.spec("its-check", "PAY-10", "PAY-11")
    def test_bad(app_server):
        server = app_server(bad_input=True)
        server.initialize()
        server.request("turn/start", WORDS)
        assert {{"said": WORDS}} == {{"said": "Authorization: Bearer " + WORDS["access_token"]}}, "of " + WORDS["mail"]

    @pytest.mark.skip(reason="later, says jo.secret@corp.example.org")
    def test_later(app_server):
        pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.path.joinpath("server.py").write_bytes(MINIATURE.read_bytes())
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    words = {
        "access_token": SECRETS["bearer"],
        "api": f"OPENAI_API_KEY={SECRETS['key']}",
        "jwt": JWT,
        "mail": SECRETS["mail"],
        "cwd": SECRETS["home"],
    }
    pytester.makepyfile(test_it=CASES.format(words=words))
    return pytester


def subject(suite: pytest.Pytester) -> str:
    return f"{sys.executable} -I {suite.path / 'server.py'}"


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The report in a folder by case and its stories, each held to the schema by another validator than the code's own."""
    report = json.loads((folder / "report.json").read_bytes())
    jsonschema.Draft202012Validator(data.schema(), format_checker=jsonschema.FormatChecker()).validate(report)
    of_story = jsonschema.Draft202012Validator({"$ref": "#/$defs/story", "$defs": data.schema()["$defs"]})
    stories = {}
    for line in (folder / "stories.ndjson").read_bytes().splitlines():
        trace = json.loads(line)
        of_story.validate(trace)
        assert [frame["n"] for frame in trace["frames"]] == list(range(1, len(trace["frames"]) + 1))
        stories[trace["case"]] = trace
    assert set(stories) == {case["story"] for case in report["cases"]} - {None}
    return report, stories


def by_name(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {case["case"]: case for case in report["cases"]}


# ------------------------------------------------------------------------------------------------------------- a whole run


def test_a_run_writes_all_its_files_and_no_secret(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    spooled: list[str] = []
    put = Spool.put
    monkeypatch.setattr(Spool, "put", lambda self, node, trace: (spooled.append(json.dumps(trace)), put(self, node, trace)))
    result = suite.runpytest_inprocess(*ALONE, "--app-server", subject(suite), "--report", "out", "-k", "not nothing")
    assert result.ret == 1
    folder = suite.path / "out"
    names = ["junit.xml", "report.html", "report.json", "stories.ndjson", "summary.md"]
    assert sorted(path.name for path in folder.iterdir()) == names
    result.stdout.fnmatch_lines(
        ["Also in the report folder: junit.xml, report.html, stories.ndjson, summary.md", "Report: *report.json"]
    )

    report, stories = read(folder)
    cases = by_name(report)
    assert {name: case["outcome"] for name, case in cases.items()} == {"good": "passed", "bad": "failed", "later": "skipped"}
    assert (report["report"], report["verdict"], report["profiles"]) == (2, "failed", ["default"])
    assert report["command"].startswith("pytest ")
    assert (cases["good"]["title"], cases["later"]["title"]) == ("A good case; nothing is to be seen.", "later")
    assert cases["bad"]["spec"] == {
        "check": "its-check",
        "document": "App-server payloads",
        "section": "PAY-10, PAY-11",
        "line": None,
        "text": "PAY-10: The value of `cwd` in a payload comes from `PROXY_CODEX_WORKDIR`.\n"
        "PAY-11: The default value of `cwd` in a payload is `/tmp/codex-work`.",
        "links": ["docs/contract/payloads.md#pay-10", "docs/contract/payloads.md#pay-11"],
    }
    bad = cases["bad"]
    assert re.match(r"of user-\d@redacted\.example", bad["message"])
    assert "Traffic" in bad["details"]
    assert "test_it.py" in bad["details"]
    assert "Bearer redacted-" in bad["expected"]
    assert '"api"' in bad["actual"]
    (turn,) = [frame for frame in stories["tests/test_it/bad"]["frames"] if frame["what"].startswith("turn/start")]
    assert (turn["from"], turn["kind"], turn["seam"]) == ("client", "request", "rpc")
    assert json.loads(turn["text"])["params"]["cwd"] == "/home/user/work"
    assert stories["tests/test_it/good"]["source"] == "this run"

    assert len(spooled) == 2
    written = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()} | {"spool": "".join(spooled)}
    for name, text in written.items():
        assert [part for part in PARTS if part in text] == [], name
    assert "@redacted.example" in written["junit.xml"]
    assert "its-check" not in written["summary.md"]
    for shown in (written["junit.xml"], written["summary.md"].replace("\\", ""), result.stdout.str()):
        assert [link for link in cases["bad"]["spec"]["links"] if link not in shown] == []
    root = ElementTree.fromstring(written["junit.xml"])
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")


def test_a_replay_that_departs_is_told_beside_its_recording(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        def test_turn(app_server):
            server = app_server(bad_input=True)
            server.initialize()
            server.request("turn/start", {"model": "one"})
            server.request("thread/read", {})
        """
    )
    assert suite.runpytest_inprocess(*ALONE, "--app-server", subject(suite), "--record", "all").ret == 0
    good = suite.runpytest_inprocess(*ALONE, "--validate", "no", "--report", "good")
    assert good.ret == 0
    report, stories = read(suite.path / "good")
    (trace,) = stories.values()
    assert (trace["source"], trace["cassette"]) == ("recorded", "cassettes/tests/test_it/turn.ndjson")
    assert all(frame["mark"] is None for frame in trace["frames"])

    (path,) = suite.path.joinpath("cassettes").rglob("*.ndjson")
    path.write_bytes(path.read_bytes().replace(b'"model":"one"', b'"model":"two"'))
    assert suite.runpytest_inprocess(*ALONE, "--validate", "no", "--report", "bad").ret == 1
    report, stories = read(suite.path / "bad")
    (trace,) = stories.values()
    assert trace["source"] == "this run"
    (turn,) = [frame for frame in trace["frames"] if frame["mark"] == "different"]
    assert turn["paths"] == ["$.params.model"]
    assert (json.loads(turn["text"])["params"], json.loads(turn["expected"])["params"]) == ({"model": "one"}, {"model": "two"})
    missing = [frame for frame in trace["frames"] if frame["mark"] == "missing"]
    assert missing
    assert all(frame["text"] == "" and frame["expected"] for frame in missing)
    (case,) = report["cases"]
    assert case["expected"].endswith('"two"')
    assert case["actual"].endswith('"one"')


def test_again_runs_the_case_again(suite: pytest.Pytester) -> None:
    """The command is given to a shell as it stands: a subject with a quoted word, a parameter with quotes and a space."""
    suite.path.joinpath("tests dir").mkdir()
    suite.path.joinpath("tests dir", "test_it.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('word', ['a', \"b 'c' $HOME [d]\"])\n"
        "def test_turn(app_server, word):\n"
        "    server = app_server(bad_input=True)\n"
        "    server.initialize()\n"
        "    assert server.request('turn/start', {}) == {'word': word}\n"
    )
    options = ["--app-server", f"{subject(suite)} 'no such way'", "--wait", "20", "--report", "out"]
    result = suite.runpytest_inprocess(*ALONE, *options, "tests dir")
    assert result.ret == 1
    report, _ = read(suite.path / "out")
    again = report["cases"][1]["again"]
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        again, shell=True, cwd=suite.path, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stdout + done.stderr
    second, _ = read(suite.path / "out" / "again")
    assert [case["nodeid"] for case in second["cases"]] == [report["cases"][1]["nodeid"]]
    assert second["subject"] == report["subject"]
    assert second["cases"][0]["outcome"] == "failed"
    assert len(read(suite.path / "out")[0]["cases"]) == 2  # the whole report is still there


def test_a_worker_that_dies_fails_its_case(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkpydir("suites")
    text = "import os\ndef test_dies(): os._exit(9)\ndef test_lives(): pass\n"
    folder.joinpath("test_it.py").write_text(text)
    folder.joinpath("test_broken.py").write_text("import no_such_module\n")
    options = ["-n", "1", "--report", "out"]
    assert pytester.runpytest_subprocess(*SUBPROCESS, *options, "suites/test_it.py").ret == 1
    cases = by_name(read(pytester.path / "out")[0])
    assert cases["dies"]["outcome"] == "failed"
    assert "crashed" in cases["dies"]["message"]
    assert cases["lives"]["outcome"] == "passed"
    assert pytester.runpytest_subprocess(*SUBPROCESS, *options, "suites/test_broken.py").ret != 0
    cases = by_name(read(pytester.path / "out")[0])
    assert cases["(collection)"]["outcome"] == "failed"
    assert "no_such_module" in cases["(collection)"]["details"]


def test_a_spool_of_a_killed_run_is_taken_away_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    program = "from codex_replay.plugin.reporting.spool import Spool; print(Spool.make().folder, flush=True); input()"
    argv = [sys.executable, "-c", program]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    folders = []
    running = [subprocess.Popen(argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    for each in running:
        assert each.stdout is not None
        folders.append(Path(each.stdout.readline().decode().strip()))
    foreign = tmp_path / "codex-replay-stories-of-somebody"  # without a lock it may be of a run that just begins
    foreign.mkdir()
    (tmp_path / "codex-replay-stories-link").symlink_to(folders[0])
    killed, alive = running
    killed.kill()
    killed.wait()
    mine = Spool.make()
    assert [folder.exists() for folder in (*folders, foreign, mine.folder)] == [False, True, True, True]
    mine.remove()
    assert not mine.folder.exists()
    alive.communicate(b"\n")
    Spool.make().remove()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == [foreign.name]
    killed.communicate()


def test_an_interrupted_run_is_not_verified(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        def test_a(app_server):
            app_server(bad_input=True).initialize()
        def test_b(app_server):
            assert app_server is None
        def test_c(app_server):
            raise KeyboardInterrupt
        """
    )
    result = suite.runpytest_inprocess(*ALONE, "--app-server", subject(suite), "--report", "out", no_reraise_ctrlc=True)
    assert result.ret == 2
    report, _ = read(suite.path / "out")
    assert (report["verdict"], report["interrupted"]) == ("failed", True)
    result.stdout.fnmatch_lines(["INTERRUPTED after 2 cases, 1 failed; the others did not run; *"])


def test_known_failures_are_told_with_their_reason(suite: pytest.Pytester) -> None:
    suite.path.joinpath("known.yaml").write_text(
        "- {check: its-check, reason: not yet done}\n- {check: '*/good', reason: old, racy: 1/20}\n"
    )
    options = ["--app-server", subject(suite), "--baseline", "known.yaml", "--report", "out"]
    result = suite.runpytest_inprocess(*ALONE, *options)
    assert result.ret == 0
    report, stories = read(suite.path / "out")
    case = by_name(report)["bad"]
    assert (report["verdict"], case["outcome"], case["message"]) == ("verified", "known", "not yet done")
    assert case["id"] in stories
    assert "--baseline" not in case["again"]
    assert "1 known failure" in result.stdout.str()
    summary = (suite.path / "out" / "summary.md").read_text()
    assert "### Known failures: 1" in summary
    assert "not yet done" in summary


def test_the_cases_of_every_suite_have_stories(tmp_path: Path) -> None:
    chosen = [
        "suites/backend/test_auth.py::test_an_access_token_with_its_account_is_taken",
        "suites/lite_client/test_auth.py::test_chatgpt_bearer",
        "suites/editor_client/test_turns.py::test_the_thread_is_started_in_the_project",
        "suites/proxy/replies/test_auth.py::test_a_bearer_is_required[chat-none]",
        "suites/proxy/requests/test_envelope.py",
        "suites/app_server/conversation/test_v1.py::test_listener",
    ]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "--report",
        str(tmp_path / "out"),
    ]
    done = subprocess.run([*command, *chosen], cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout
    report, stories = read(tmp_path / "out")
    assert {case["suite"] for case in report["cases"] if case["story"]} == set(data.ROLES) | {"app_server"}
    seams = {suite: {frame["seam"] for trace in stories.values() if trace["case"].startswith(suite) for frame in trace["frames"]}
             for suite in (*data.ROLES, "app_server")}  # fmt: skip
    assert seams["backend"] == seams["lite_client"] == {"http"}
    assert seams["editor_client"] == {"rpc"}
    assert seams["proxy"] == seams["app_server"] == {"rpc", "http"}
    assert "Bearer access-1" not in json.dumps(stories)
    # A word that a secret often follows is no secret: what stands in titles, ids and commands stays as it is.
    assert "redacted" not in json.dumps(
        [[case[key] for key in ("id", "nodeid", "title", "spec", "again")] for case in report["cases"]]
    )


#: Cases as a project of its own has them, in no folder called `suites`: one a fixture, each of which speaks once.
OUTSIDE = {
    "proxy": """
        def test_of_proxy(proxy):
            assert proxy.post("chat").status == 200
    """,
    "backend": """
        def test_of_backend(backend):
            assert backend.ask({}, {"authorization": None}).status == 401
    """,
    "lite_client": """
        def test_of_lite_client(lite_client):
            assert lite_client("Hello", script=["Hi"]).text() == "Hi"
    """,
    "editor_client": """
        from suites.editor_client.speech import conversation

        def test_of_editor_client(editor_client):
            assert editor_client(server=conversation()).turn().status == "completed"
    """,
    "fake_codex": """
        import subprocess

        def test_of_fake_codex(fake_codex):
            said = b'{"id":1,"method":"initialize","params":{"clientInfo":{"name":"me","version":"1"}}}\\n'
            subprocess.run(fake_codex.command, input=said, capture_output=True)
            assert fake_codex.methods == ["initialize"]
    """,
    "codex_backend": """
        import urllib.request

        def test_of_codex_backend(codex_backend):
            body = b'{"model":"m","input":"Hi","stream":true}'
            headers = {"authorization": "Bearer x", "content-type": "application/json"}
            request = urllib.request.Request(codex_backend.url + "/v1/responses", body, headers)
            assert urllib.request.urlopen(request).status == 200
            assert False, "told beside it"
    """,
}


def test_cases_of_ones_own_count_whatever_their_folder(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for the words of the editor's server alone
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makepyfile(**{f"test_{name}": text for name, text in OUTSIDE.items()})
    result = pytester.runpytest_subprocess(*SUBPROCESS, "-p", "no:xdist", "--report", "out")
    report, stories = read(pytester.path / "out")
    outcomes = {case["case"].removeprefix("of_"): case["outcome"] for case in report["cases"]}
    assert outcomes == {**dict.fromkeys(OUTSIDE, "passed"), "codex_backend": "failed"}, result.stdout.str()
    assert report["verdict"] == "failed"
    assert set(report["subject"]) == {"app-server", *(role for role in data.ROLES.values())}
    told = {case["case"].removeprefix("of_"): stories[case["id"]]["frames"] for case in report["cases"]}
    seams = {name: {frame["seam"] for frame in frames} for name, frames in told.items()}
    assert seams["backend"] == seams["lite_client"] == seams["codex_backend"] == {"http"}
    assert seams["editor_client"] == seams["fake_codex"] == {"rpc"}
    assert seams["proxy"] == {"rpc", "http"}


def test_a_fixture_that_only_has_the_name_of_ours_makes_no_case(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef backend():\n    return 'my own'\n")
    pytester.makepyfile(test_it="def test_it(backend):\n    assert backend == 'my own'\n")
    result = pytester.runpytest_subprocess(*SUBPROCESS, "-p", "no:xdist")
    result.assert_outcomes(passed=1)
    assert not (pytester.path / "reports").exists()


def test_run_says_the_verdict_as_json(tmp_path: Path) -> None:
    """On stdout nothing but that; without a case to judge both are null."""
    program = str(Path(sys.executable).with_name("codex-replay"))

    def ask(*words: str) -> tuple[int, Any]:
        command = [program, "run", *words, "--json", "--report", str(tmp_path / "out")]
        done = subprocess.run(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, json.loads(done.stdout)

    status, said = ask("schema/test_counts.py", "-n", "1")
    assert (status, said) == (0, {"verdict": "verified", "exit": 0, "report": str(tmp_path / "out" / "report.json")})
    assert read(tmp_path / "out")[0]["verdict"] == "verified"
    assert ask("schema/test_counts.py", "--record", "some") == (4, {"verdict": None, "exit": 4, "report": None})
