"""Markers that cite the contract: one that cites nothing that exists ends the run before any case, in a sentence."""

from __future__ import annotations

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
        ('"its-check"', 4, "its spec marker 'its-check' cites no statement. Name a statement of docs/contract."),
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
