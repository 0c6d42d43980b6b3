"""A run on a Codex without a schema bundle states that no frame was validated, and why."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]
ALONE = [word for name in ("cacheprovider", "asyncio", "syrupy", "hypothesispytest") for word in ("-p", f"no:{name}")]
SENTENCE = "No frame was validated: codex-replay has the schema bundle of Codex "


@pytest.mark.parametrize(
    ("options", "shown"), [((), False), (("--app-server", "true"), True), (("--app-server", "true", "--validate", "no"), False)]
)
def test_a_version_without_a_bundle_is_named(pytester: pytest.Pytester, options: tuple[str, ...], shown: bool) -> None:
    pytester.makepyprojecttoml("[tool.pytest.ini_options]\n")
    folder = pytester.mkdir("suites").joinpath("mine")
    folder.mkdir()
    folder.joinpath("test_it.py").write_text("def test_one():\n    pass\n")
    found = pytester.runpytest_subprocess(*ALONE, "suites/mine", *options)
    assert found.ret == 0
    assert (SENTENCE in found.stdout.str()) is shown
    assert ("not of an unknown version." in found.stdout.str()) is shown
    assert [path.name for path in pytester.path.joinpath("reports").iterdir()] == [f"mine-{'true' if options else 'fake'}"]
