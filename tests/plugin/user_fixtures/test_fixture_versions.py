"""The fixture `fake_codex` as another version of Codex, and with threads that a later start knows."""

from __future__ import annotations

import pytest

from tests.plugin.user_fixtures.projects import run

pytest_plugins = ["pytester"]


def test_the_version_to_imitate(project: pytest.Pytester) -> None:
    """The client starts the fake of 0.169.0, whose commands have another tool, and whose config.toml has other keys."""
    result = run(
        project,
        """
        import pytest

        @pytest.fixture(autouse=True)
        def our_codex(fake_codex):
            fake_codex.version("0.169.0")

        def test_it(fake_codex):
            fake_codex.config(approval_policy="on-request", approvals_reviewer="user")
            arguments = {"cmd": "make test", "sandbox_permissions": "require_escalated", "justification": "It needs the network."}
            call = {"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": arguments,
                    "result": {"stdout": "ok"}}
            fake_codex.script([{"items": [call]}, "Done."])
            client = Client(fake_codex.command)
            assert client.ask("Test") == "Done."
            assert client.close() == 0
            assert "/0.169.0 " in fake_codex.received[0]["result"]["userAgent"]
            assert fake_codex.sent[-1]["result"] == {"decision": "accept"}
            assert "ok" in fake_codex.model_calls[1].outputs["c1"]
            assert fake_codex.conversation.codex == "0.169.0"

        def test_a_key_of_the_other_version(fake_codex):
            with pytest.raises(ValueError, match="'approvals_reviewer' is not a key of the config.toml of Codex 0.92.0"):
                fake_codex.version("0.92.0")
                fake_codex.config(approvals_reviewer="user")
            fake_codex.version("0.169.0")
            fake_codex.config(approvals_reviewer="user")
            with pytest.raises(ValueError, match="'approvals_reviewer' is not a key of the config.toml of Codex 0.92.0"):
                fake_codex.version("0.92.0")

        @pytest.mark.parametrize("codex", ["0.116.0", "latest"])
        def test_a_version_without_a_table(fake_codex, codex):
            with pytest.raises(ValueError, match=f"{codex}.*0.92.0.*0.169.0|{codex}.*0.169.0.*0.92.0"):
                fake_codex.version(codex)
        """,
    )
    result.assert_outcomes(passed=4)


def test_a_tool_of_another_version(project: pytest.Pytester) -> None:
    """A failed test says that the script calls a tool which the version does not have; a test that passed is silent."""
    result = run(
        project,
        """
        import pytest

        CALL = {"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": {"cmd": "make test"}}

        @pytest.mark.parametrize("codex", ["0.92.0", "0.169.0"])
        def test_it(fake_codex, codex):
            fake_codex.version(codex)
            fake_codex.script([{"items": [CALL]}, "Done."])
            client = Client(fake_codex.command)
            assert client.ask("Test") == "Done."
            assert client.close() == 0
            assert codex == "no version"
        """,
    )
    result.assert_outcomes(failed=2)
    told = [line for line in result.outlines if "does not have the tool" in line]
    assert told == ["note: Codex 0.92.0 does not have the tool 'exec_command', which the script calls"]


@pytest.mark.parametrize("codex", ["0.92.0", "0.169.0"])
def test_threads_that_the_next_start_knows(project: pytest.Pytester, codex: str) -> None:
    result = run(
        project,
        f"""
        def test_it(fake_codex):
            fake_codex.version({codex!r})
            fake_codex.keep_threads()
            fake_codex.script(["One.", "Two."])
            client = Client(fake_codex.command)
            assert client.ask("Hi") == "One."
            assert client.close() == 0
            later = Client(fake_codex.command)
            later.thread = later.call(4, "thread/resume", {{"threadId": client.thread}})["thread"]["id"]
            assert later.ask("More") == "Two."
            assert later.close() == 0
            assert [text for text in fake_codex.model_calls[1].prompts if "<" not in text] == ["Hi", "More"]
        """,
    )
    result.assert_outcomes(passed=1)
