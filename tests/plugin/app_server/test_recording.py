"""The pytest plugin records an app-server, and replays what it recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin.app_server.miniature import GOOD, run

pytest_plugins = ["pytester"]


def cassettes(suite: pytest.Pytester) -> dict[str, bytes]:
    return {
        str(path.relative_to(suite.path)): path.read_bytes()
        for path in suite.path.rglob("*.ndjson")
        if path.name != "stories.ndjson"
    }


RECORDED = """
    import pytest

    @pytest.mark.parametrize("word", ["a", "b c"])
    def test_hello(app_server, word):
        server = app_server(bad_input=True)
        server.initialize()
        assert server.request("turn/start", {"word": word, "cwd": server.work}) == {}
        app_server().initialize()
"""


def test_record_and_replay(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=RECORDED)
    result = run(suite, "--record", "new")
    assert result.ret == 0
    first = cassettes(suite)
    names = [f"cassettes/tests/test_it/hello-{word}.ndjson" for word in ("a.2", "a", "b_c.2", "b_c")]
    assert sorted(first) == names
    result.stdout.fnmatch_lines(["recorded *hello-a.ndjson", "recorded *hello-b_c.ndjson"])
    assert b'"cwd":"/home/user/work"' in first[names[1]]
    assert str(suite.path).encode() not in b"".join(first.values())
    assert run(suite, "--app-server", "fake", "--validate", "no").ret == 0
    again = run(suite, "--record", "all")
    assert again.ret == 0
    assert "recorded" not in again.stdout.str()
    assert cassettes(suite) == first


def test_a_failed_case_leaves_its_cassette_alone(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    first = cassettes(suite)
    suite.makepyfile(test_it=GOOD.replace("turn/start", "turn/begin") + "\n        assert False\n")
    assert run(suite, "--record", "all").ret == 1
    assert cassettes(suite) == first


def test_recording_again_shows_what_has_changed(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    first = cassettes(suite)
    suite.makepyfile(test_it=GOOD.replace("turn/start", "turn/begin"))
    assert run(suite, "--record", "new").ret == 0
    assert cassettes(suite) == first
    assert run(suite, "--record", "all").ret == 0
    assert cassettes(suite) != first


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('"turn/start", {}', '"turn/start", {"more": 1}'), "differs at params.more"),
        (('"turn/start", {}', '"thread/list", {}'), "no recorded frame matches"),
        (('assert server.request("turn/start", {}) == {}', "pass"), "never came from the client: turn/start"),
    ],
)
def test_another_conversation_than_the_recorded_one(suite: pytest.Pytester, change: tuple[str, str], words: str) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    suite.makepyfile(test_it=GOOD.replace(*change))
    result = run(suite, "--app-server", "fake")
    result.assert_outcomes(failed=1)
    assert words in result.stdout.str()


def test_no_recording(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    result = run(suite, "--app-server", "fake")
    assert result.ret == 1
    assert "There is no recording of tests/test_it/hello" in result.stdout.str()


def test_a_broken_cassette(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD)
    run(suite, "--record", "all")
    (path,) = suite.path.joinpath("cassettes").rglob("*.ndjson")
    path.write_bytes(b"not a cassette\n")
    result = run(suite, "--app-server", "fake")
    assert result.ret == 1
    assert "this is not a cassette header" in result.stdout.str()


def test_a_line_too_long_for_a_cassette(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_it=GOOD.replace('"turn/start", {}', '"turn/start", {"x": "y" * 300_000}'))
    result = run(suite, "--record", "all")
    assert result.ret == 1
    assert "start the server with cut=SIZE" in result.stdout.str()
    assert cassettes(suite) == {}


def test_what_the_case_itself_does_wrong_is_blamed_on_the_harness(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_it="""
        def test_hello(app_server):
            server = app_server(bad_input=BAD)
            server.initialize()
            server.request("account/read", {"nonsense": 1})
        """.replace("BAD", "False")
    )
    source = Path(__file__).parents[3] / "cassettes/app_server/test_handshake/initialized_is_not_answered.ndjson"
    target = suite.path / "cassettes/tests/test_it/hello.ndjson"
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes().replace(b'"account/read","params":{}', b'"account/read","params":{"nonsense":1}'))
    result = run(suite, "--app-server", "fake")
    assert result.ret == 1
    assert "The case itself sends messages that the protocol does not have (harness)" in result.stdout.str()
    assert "nonsense" in result.stdout.str()
    path = suite.path / "test_it.py"
    path.write_text(path.read_text().replace("bad_input=False", "bad_input=True"))
    assert run(suite, "--app-server", "fake").ret == 0
