"""The classes of defects of real proxies, planted into two proxies; `make defects` plants them alone, in pairs and into three."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from tests.strength.defects.__main__ import failures, main, named_by, run
from tests.strength.defects.table import DEFECTS, PROXIES, command
from tests.strength.proxy_variants import table

#: Planted at once, so that one start of pytest serves for six or seven; in each group none hides another.
GROUPS = (
    ("two-calls", "first-message", "late-errors", "no-approvals", "foreign-thread", "lost-input", "half-answer"),
    ("usage-field", "no-schema", "unknown-members", "repeated-deltas", "no-interrupt", "partial-block"),
)


@pytest.mark.parametrize("group", range(len(GROUPS)))
@pytest.mark.parametrize("proxy", ["reference", "node"])
def test_each_class_is_named_by_a_case(proxy: str, group: int) -> None:
    if proxy == "node" and shutil.which("node") is None:
        pytest.skip("there is no node here")
    planted = tuple(defect for defect in DEFECTS if defect.name in GROUPS[group])
    failed = failures(proxy, planted, "fake", chosen=True)
    assert [defect.name for defect in planted if not named_by(defect, failed)] == []


@pytest.mark.parametrize("proxy", ["node", "loop"])
def test_without_a_defect_the_chosen_cases_pass(proxy: str) -> None:
    if proxy == "node" and shutil.which("node") is None:
        pytest.skip("there is no node here")
    chosen = "one_submission or hang or first_word or foreign and text or unknown_members or client_that_goes_away"
    assert failures(proxy, (), "fake", chosen) == []


def test_an_answer_that_ends_early_is_no_turn_that_goes_on() -> None:
    """A client hangs up in mid-message, so that the defect first-message has not ended the answer before."""
    planted = tuple(defect for defect in DEFECTS if defect.name == "first-message")
    chosen = "client_that_goes_away or does_not_wait_for_a_whole or hangs_up_early"
    assert failures("loop", planted, "fake", chosen) == []


def test_an_answer_that_ends_early_mixes_no_threads() -> None:
    """The other threads of these cases do not cause the missing text, so a message about them would mislead."""
    planted = tuple(defect for defect in DEFECTS if defect.name == "first-message")
    assert failures("loop", planted, "fake", "test_foreign_threads and chat") == []
    (message,) = {text for _, text in failures("loop", planted, "fake", "silent_stream and chat")}
    assert message.startswith("The answer lacks 'Here.', a message of the turn; its text is 'Still. '.")


def loop(*names: str) -> list[str]:
    """Return the command of the loop proxy with these defects or choices."""
    return ["env", f"PROXY_DEFECTS={','.join(names)}", *command("loop", ())[2:]]


def failed(found: list[dict[str, Any]]) -> dict[str, str]:
    """Return the messages of the failed cases by the names of the cases."""
    return {case["id"].rpartition("/")[2]: case["message"] for case in found if case["outcome"] == "failed"}


OPTIONAL = "schema_reaches or types_of_responses_by or usage_of_a_stream or usage_adds_up or one_head or (types_of_chat and text)"


def test_a_proxy_may_refuse_an_optional_member_by_its_name() -> None:
    chosen = f"({OPTIONAL} or (events_of_a_foreign and stream and (usage or text))) and not native and not tool"
    assert failed(run("loop", loop("refuses-options"), chosen)) == {}
    found = failed(run("loop", loop("refuses-namelessly"), chosen))
    for check in ("a_schema_reaches_the_model", "usage_of_a_stream", "usage_adds_up", "one_head_and_one_choice", "types_of"):
        assert [name for name in found if name.startswith(check)], (check, found)
    assert [name for name in found if "foreign" in name and "usage" not in name] == []


def test_only_a_proxy_without_tools_may_refuse_their_calls() -> None:
    chosen = "(a_tools_output and no-tools) or without_a_content or (one_model_call and chat and whole)"
    able = 'capabilities = ["chat", "responses", "stream", "models"]'
    found = run("loop", loop("refuses-calls"), chosen, able=able)
    skipped = [case["message"] for case in found if case["outcome"] == "skipped"]
    assert (len(skipped), len(found), failed(found)) == (5, 6, {})
    assert all("refuses calls and outputs of tools" in message for message in skipped)
    assert len(failed(run("loop", loop("refuses-calls"), chosen))) == 5


def test_a_line_that_is_too_long_for_a_proxy_is_named() -> None:
    messages = failed(run("loop", loop("line-limit"), "test_pieces_of_every_size and 100K and chat and whole"))
    assert [text.startswith("The app-server sent a line of ") for text in messages.values()] == [True]


def test_a_refused_call_of_the_proxy_is_named() -> None:
    messages = failed(run("loop", loop("unknown-call"), "test_one_request_is_one_model_call and chat and whole"))
    assert [text.startswith("The app-server refused thread/inject (") for text in messages.values()] == [True]


def test_every_class_is_in_a_group_and_has_a_variant_of_the_reference() -> None:
    assert sorted(name for group in GROUPS for name in group) == sorted(defect.name for defect in DEFECTS)
    assert {defect.variant for defect in DEFECTS} <= {row.name for row in table.TABLE}
    assert all(command(proxy, DEFECTS[:2])[0] == "env" for proxy in PROXIES)


def test_a_class_is_named_only_by_a_message_that_says_it() -> None:
    failed = [("proxy/a", "no complete answer within 10 s"), ("proxy/b", "The answer is empty.")]
    assert [defect.name for defect in DEFECTS if named_by(defect, failed)] == []
    assert all(re.compile(defect.says) for defect in DEFECTS)


def test_a_class_that_no_case_names_is_a_failure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.strength.defects import __main__ as program

    monkeypatch.setattr(program, "failures", lambda *_: [("proxy/a", "no complete answer within 10 s")])
    assert main(["--proxy", "node", "--defect", "two-calls"]) == 1
    assert "two-calls" in (said := capsys.readouterr().out)
    assert "NOT NAMED (1 failed: proxy/a)" in said


def test_a_proxy_that_opens_conversations_passes_the_cases_about_a_death() -> None:
    """The app-server reports the start of its turn by other notifications than that of a thread's."""
    v1 = ["env", "PROXY_PROFILE=as-specified", "PROXY_RESPONSES_SKIP_TURN=true", *command("reference", ())]
    found = run("conversations", v1, "responses and (dies_before_the_first_word or dies_in_mid_turn)")
    assert [(case["id"], case["message"]) for case in found if case["outcome"] == "failed"] == []
    assert len(found) == 4
