"""The names of the modules of the installed suites: one short form, wherever the package is installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_replay.plugin.base import places


@pytest.mark.parametrize("below", ["site-packages", "project/.venv/lib/site-packages"])
def test_an_installed_module_has_its_short_name_wherever_the_package_is(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites = tmp_path / below / "codex_replay" / "packaged" / "suites"
    module = suites / "proxy" / "requests" / "test_threads.py"
    module.parent.mkdir(parents=True)
    module.touch()
    monkeypatch.setattr(places, "installed_suites", lambda: suites)
    root = tmp_path / "project"
    name = places.installed_id(module, root)
    assert name == "suites/proxy/requests/test_threads.py"
    assert places.place_of(name, root) == module
    assert places.installed_id(root / "tests" / "test_own.py", root) is None
    assert places.installed_id(module, suites.parent) is None, "of a checkout, pytest's own name is that already"
