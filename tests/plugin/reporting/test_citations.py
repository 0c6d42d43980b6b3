"""Markers that cite the contract: one that cites nothing that exists ends the run before any case, in a sentence."""

from __future__ import annotations

import json

import pytest

pytest_plugins = ["pytester"]
ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        ('"its-check", "PAY-07", "REAL-31"', 0, "1 passed"),
        ('"its-check", source="docs/proxy.md", says="It is so."', 0, "1 passed"),
        ('"its-check", "PAY-07", "PAY-none"', 4, "PAY-none is not a statement of docs/contract"),
        ('"its-check", "payloads.md, 2. The turn"', 4, "payloads.md, 2. The turn is not a statement of docs/contract"),
        ('"its-check"', 4, "its spec marker 'its-check' cites no statement of docs/contract. Add one to the marker."),
    ],
)
def test_a_marker_must_cite_what_exists(pytester: pytest.Pytester, arguments: str, status: int, sentence: str) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites").joinpath("mine")
    folder.mkdir()
    folder.joinpath("test_it.py").write_text(f"import pytest\n\n@pytest.mark.spec({arguments})\ndef test_one():\n    pass\n")
    found = pytester.runpytest_subprocess(*ALONE, "suites", "--report", "out")
    assert found.ret == status
    assert sentence in found.stdout.str() + found.stderr.str()


def run_parametrised(pytester: pytest.Pytester, of_the_parameter: str, of_the_check: str) -> pytest.RunResult:
    """Run two cases of a check: one cites the statement of its parameter, the other only those of the check."""
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites").joinpath("mine")
    folder.mkdir()
    folder.joinpath("test_it.py").write_text(
        "import pytest\n\n"
        f"@pytest.mark.parametrize('n', [pytest.param(1, marks=pytest.mark.spec('it', {of_the_parameter})), 2])\n"
        f"@pytest.mark.spec('it', {of_the_check})\ndef test_one(n):\n    pass\n"
    )
    return pytester.runpytest_subprocess(*ALONE, "suites", "--report", "out")


def test_a_parameter_cites_its_own_statement(pytester: pytest.Pytester) -> None:
    """The report of a parametrised case has the statement of the parameter, and not all statements of the check."""
    assert run_parametrised(pytester, "'PAY-07'", "'PAY-07', 'REAL-31'").ret == 0
    cases = json.loads((pytester.path / "out" / "report.json").read_text())["cases"]
    assert sorted(case["spec"]["section"] for case in cases) == ["PAY-07", "PAY-07, REAL-31"]


def test_a_wrong_citation_of_a_parameter_ends_the_run(pytester: pytest.Pytester) -> None:
    found = run_parametrised(pytester, "'PAY-none'", "'PAY-07'")
    assert found.ret == 4
    assert "PAY-none is not a statement" in found.stdout.str() + found.stderr.str()
