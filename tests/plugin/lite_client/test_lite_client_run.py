"""What a failed run of a lite client is told as: the refusal first, and never taken for the failure that a case means."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.plugin.base.ledger import Request
from codex_replay.plugin.lite_client.fixture import Run
from codex_replay.shell.rpc.client import SubjectFailure

REFUSED = 'account-missing: The header "chatgpt-account-id" is required under ChatGPT auth.'


def asked(status: int | None, sentence: str | None = None, path: str = "/backend-api/codex/responses") -> Request:
    return Request("POST", path, [], {"model": "gpt-5.2-codex", "tools": ["x" * 3000]}, status, sentence)


def ended(folder: Path, *requests: Request, status: int = 1, stdout: bytes = b"", stderr: str = "It failed.") -> Run:
    return Run(folder / "auth.json", status, stdout, stderr, list(requests), [])


def test_a_refused_request_is_why_a_run_failed(tmp_path: Path) -> None:
    """It is the first thing said, before the exit status that came of it."""
    run = ended(tmp_path, asked(200), asked(400, REFUSED))
    with pytest.raises(SubjectFailure, match=rf"^The client sent a request that the backend refuses: {REFUSED}\n"):
        run.text()


def test_a_refused_request_is_not_the_failure_that_a_case_means(tmp_path: Path) -> None:
    """The stream of the case never broke off, for it never began."""
    with pytest.raises(SubjectFailure, match=rf"^The client sent a request that the backend refuses: {REFUSED}\n"):
        ended(tmp_path, asked(400, REFUSED)).failure()


def test_an_answer_of_the_script_is_the_failure_that_a_case_means(tmp_path: Path) -> None:
    """A status that the script gives has no sentence, a token that is not good is a case's own; one more try is no fault."""
    requests = asked(400), asked(401, "The access token has expired."), asked(501, "The only turn of the script is used.")
    assert ended(tmp_path, *requests).failure() == "It failed."


def test_a_client_that_never_asks_has_met_no_fault(tmp_path: Path) -> None:
    """One that posts to another address fails as well as one whose stream breaks off; a refresh is no request to the model."""
    for requests in ((), (asked(200, path="/oauth/token"),)):
        with pytest.raises(SubjectFailure, match=r"^The client exited with status 1 before it asked the model: It failed\.\n"):
            ended(tmp_path, *requests).failure()
    assert ended(tmp_path).failure(asked=False) == "It failed."


@pytest.mark.parametrize(
    ("requests", "after"),
    [
        ((), "before it asked the model"),
        ((asked(200), asked(401)), "after POST /backend-api/codex/responses -> 401"),
        ((asked(None),), "after POST /backend-api/codex/responses -> no answer"),
        ((asked(200),), "although every request was answered 200"),
    ],
)
def test_a_failure_that_no_case_meant_says_what_it_came_after(tmp_path: Path, requests: tuple[Request, ...], after: str) -> None:
    with pytest.raises(SubjectFailure) as told:
        ended(tmp_path, *requests).text()
    assert str(told.value).partition("\n")[0] == f"The client exited with status 1 {after}: It failed."


def test_the_sentence_is_short_and_the_section_below_it_whole(tmp_path: Path) -> None:
    """No body stands in it, and of a long stderr the two ends, since what a program fell over stands last."""
    run = ended(tmp_path, asked(200), stderr="Traceback\n" + "  somewhere\n" * 200 + "KeyError: 'tokens'")
    with pytest.raises(SubjectFailure) as told:
        run.text()
    assert len(str(told.value)) < 1000
    assert "gpt-5.2-codex" not in str(told.value)
    assert "Traceback" in str(told.value)
    assert str(told.value).endswith("KeyError: 'tokens'")
    assert "gpt-5.2-codex" in run.report_on()
