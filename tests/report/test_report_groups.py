"""Failed cases grouped by cause: at the terminal, in the summary and on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from test_report_parts import case, report_of

from codex_replay.plugin.reporting.spec import place
from codex_replay.report.group_failures import EARLIER, FEW, LEAST, MOST, cause, groups, sentences
from codex_replay.report.markdown import markdown
from codex_replay.report.page.build import write_html

pytest_plugins = ["pytester"]
REFUSED = 'The client sent a request that the backend refuses: The header "x" is required.'


def counted_groups(cases: Any) -> list[tuple[str, int]]:
    return [(text, len(indexes)) for text, indexes in groups(cases)]


def failed(count: int, message: str, name: str = "f") -> list[object]:
    return [case(f"{name}{i}", outcome="failed", message=message) for i in range(count)]


def test_the_first_lines_that_several_cases_say_are_counted() -> None:
    cases = [case(f"r{i}", outcome="failed", message=f"{REFUSED}\nexit status {i}") for i in range(LEAST)]
    cases += failed(LEAST + 1, "Another.", "a") + failed(LEAST - 1, "Too few say so.", "b") + failed(LEAST, "", "e")  # type: ignore[arg-type]
    cases += [case(f"s{i}", outcome="skipped", message="Skipped: later") for i in range(9)]
    assert counted_groups(cases) == [("Another.", LEAST + 1), (REFUSED, LEAST)]
    assert sentences(cases) == [f"{LEAST + 1} cases: Another.", f"{LEAST} cases: {REFUSED}"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("The proxy answered {} and not 200.", "The proxy answered \u2026 and not 200."),
        ('The header "x-{}" isn\'t there, for it\'s "{}".', "The header \u2026 isn't there, for it's \u2026."),
        ("assert {{'id': 'a {}'}} == {{'id': 'b'}}", "assert {'id': \u2026} == {'id': 'b'}"),
        ('The answer begins "cut {}', "The answer begins \u2026"),
    ],
)
def test_lines_that_differ_in_a_value_alone_are_one_where_they_are_many(line: str, told: str) -> None:
    """Of a few each is told: 401 and 500 are two causes."""
    many = [each for n in range(FEW + 1) for each in failed(1, line.format(n, n), f"m{n}-")]
    assert counted_groups(many) == [(told, FEW + 1)]  # type: ignore[arg-type]
    few = [each for n in range(FEW) for each in failed(LEAST + 1, line.format(n, n), f"m{n}-")]
    assert counted_groups(few) == [(line.format(n, n), LEAST + 1) for n in range(FEW)]  # type: ignore[arg-type]
    assert counted_groups([*many, *failed(9, "Something else.", "e")]) == [("Something else.", 9), (told, FEW + 1)]  # type: ignore[arg-type,list-item]


@pytest.mark.parametrize("details", ["\n  a\n", ' "text {}"'])
def test_a_sentence_that_announces_details_ends_with_a_full_stop(details: str) -> None:
    cases = [
        each for n in range(FEW + 1) for each in failed(1, f"The turn failed, but nothing says so:{details.format(n)}", f"m{n}-")
    ]
    assert counted_groups(cases) == [("The turn failed, but nothing says so.", FEW + 1)]


def test_no_more_are_told_than_a_reader_takes_in() -> None:
    cases = [each for i in range(9) for each in failed(LEAST, f"Line {'abcdefghi'[i]}." + "x" * 999, f"c{i}-")]
    assert len(counted_groups(cases)) == MOST  # type: ignore[arg-type]
    assert max(map(len, sentences(cases))) < 320  # type: ignore[arg-type]
    assert sentences(cases)[-1] == "and 4 more causes: summary.md lists all."  # type: ignore[arg-type]
    assert len(groups(cases, most=None)) == 9  # type: ignore[arg-type]
    assert markdown(report_of(*cases)).count(f"\n- {LEAST} cases: Line ") == 9  # type: ignore[arg-type]


NOT_FOUND = 'was answered 404 (not_found): b\'{"error":{"code":"not_found"}}\''


def test_one_status_and_one_error_code_are_one_cause() -> None:
    """Whatever the request, the endpoint and the status that the case wanted."""
    cases = failed(2, f"POST /v1/responses must succeed, but {NOT_FOUND}", "r")
    cases += failed(1, f"POST /v1/chat/completions must be answered 401, but {NOT_FOUND}", "c")
    cases += failed(LEAST, "POST /v1/responses must succeed, but was answered 404: b'gone'", "g")
    cases += failed(LEAST, "POST /v1/responses must succeed, but was answered 500 (not_found): b''", "s")
    assert sorted(counted_groups(cases)) == [  # type: ignore[arg-type]
        ("Requests got the status 404 (not_found) instead of a success, 401: POST /v1/responses, POST /v1/chat/completions.", 3),
        ("Requests got the status 404 instead of a success: POST /v1/responses.", LEAST),
        ("Requests got the status 500 (not_found) instead of a success: POST /v1/responses.", LEAST),
    ]


def test_a_status_has_the_condition_and_the_messages_of_its_errors() -> None:
    """The code `unsupported` alone does not say which member the proxy refuses."""
    answer = 'must succeed, but was answered 400 (unsupported): \'{"error":{"message":"No %s here.","code":"unsupported"}}\''
    cases = [each for n in ("n", "n", "text") for each in failed(1, f"POST /v1/responses {answer % n}", f"{n}{id(n)}")]
    assert counted_groups(cases) == [  # type: ignore[arg-type]
        (
            "Requests got the status 400 (unsupported) instead of a success: POST /v1/responses. The errors: 'No n here.'; "
            "'No text here.'.",
            3,
        )
    ]
    cases = failed(LEAST, "POST /v1/responses with `bearer`, must be answered 200, but was answered 401: 'no'", "b")
    told = "Requests got the status 401 instead of 200: POST /v1/responses with `bearer`."
    assert counted_groups(cases) == [(told, LEAST)]  # type: ignore[arg-type]


def test_an_error_has_the_status_that_its_case_wanted() -> None:
    answer = 'but was answered 502: \'{"error":{"message":"%s"}}\''
    texts = {"429": "No money.", "400": "The model\\'s window is full."}
    lines = [f"POST /v1/responses must be answered {status}, {answer % text}" for status, text in texts.items()]
    cases = [each for n, line in enumerate([lines[0], *lines]) for each in failed(1, line, f"v{n}-")]
    assert counted_groups(cases) == [  # type: ignore[arg-type]
        (
            "Requests got the status 502 instead of 429, 400: POST /v1/responses. The errors: 'No money.' (instead of 429); "
            "'The model's window is full.' (instead of 400).",
            3,
        )
    ]


@pytest.mark.parametrize("sign", ["'", '"'])
def test_the_body_of_an_answer_makes_no_groups(sign: str) -> None:
    """It has ids that differ in each case, and a group needs no more than its cause."""
    line = f"The app-server requested no approval. The status of the answer is 200: {sign}%s{'x' * 99}{sign}"
    cases = [each for n in range(LEAST) for each in failed(1, line % n, f"v{n}-")]
    assert counted_groups(cases) == [  # type: ignore[arg-type]
        ("The app-server requested no approval. The status of the answer is 200.", LEAST)
    ]


def test_a_value_that_all_lines_share_stays() -> None:
    lines = [f"No end of the answer within 10 s: {n} bytes of 'text'." for n in range(6)]
    cases = [each for n, line in enumerate(lines) for each in failed(1, line, f"v{n}-")]
    assert counted_groups(cases) == [("No end of the answer within 10 s: \u2026 bytes of 'text'.", 6)]  # type: ignore[arg-type]


def test_the_cases_after_the_one_with_the_details_have_its_cause() -> None:
    why = "The proxy was not ready within 20 s: GET /v1/models gave status 500."
    assert cause(f"{why}\nstderr") == cause(why + EARLIER) == cause(why.replace("20", "21")) != cause(why.replace("GET", "PUT"))
    assert cause("") == ""


def test_the_summary_tells_them_before_the_failures() -> None:
    text = markdown(report_of(*failed(LEAST, REFUSED)))  # type: ignore[arg-type]
    assert text.index(f"- {LEAST} cases: The client sent a request that") < text.index(f"### Failed: {LEAST}")
    assert "Most common" not in markdown(report_of(*failed(LEAST - 1, REFUSED)))  # type: ignore[arg-type]


def test_the_page_knows_which_cases_say_a_line(tmp_path: Path) -> None:
    """The index stands with the case, since the lists have only the start of a message."""
    long = "A line of more than a glance: " + "y" * 290
    cases = [case("green"), *failed(LEAST, long), *failed(1, "Alone.", "z")]
    write_html(report_of(*cases), [], tmp_path / "report.html")  # type: ignore[arg-type]
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', (tmp_path / "report.html").read_text(), re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["alike"] == [long[:297] + "..."]
    assert [each.get("alike") for each in data["cases"]] == [None, *[0] * LEAST, None]


def test_a_run_tells_them_and_leaves_out_the_names_of_our_own_exceptions(pytester: pytest.Pytester) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    suite = pytester.mkdir("suites") / "test_it.py"
    suite.write_text(
        "import pytest\nfrom codex_replay.plugin import SubjectFailure\n"
        "@pytest.mark.parametrize('n', range(4))\n"
        "def test_refused(n):\n    raise SubjectFailure(f'The header is required.\\nstatus {n}')\n"
        "@pytest.mark.parametrize('n', range(3))\n"
        "def test_wrong(n):\n    raise RuntimeError('No number.')\n"
    )
    done = pytester.runpytest_subprocess("suites", "--report", "out", "-p", "no:cacheprovider")
    done.stdout.fnmatch_lines(["Most common failures:", "4 cases: The header is required.", "3 cases: RuntimeError: No number."])
    messages = {each["message"] for each in json.loads((pytester.path / "out" / "report.json").read_text())["cases"]}
    assert messages == {*(f"The header is required.\nstatus {n}" for n in range(4)), "RuntimeError: No number."}


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("docs/lite-client.md", ("docs/lite-client.md", "")),
        ("docs/lite-client.md, Some readings", ("docs/lite-client.md", "Some readings")),
        ("docs/lite-client.md section 5", ("docs/lite-client.md", "section 5")),
        ("known behaviour of the real service", ("known behaviour of the real service", "")),
    ],
)
def test_a_document_in_a_folder_has_sections_too(where: str, found: tuple[str, str]) -> None:
    assert place(where) == found
