"""Fixtures of the schema suite: the schema files under test, and the frames of each cassette in the repository.

Strategy: the program that ``--app-server`` names is called like the real Codex, and generates the schema files. If
`--app-server` names the fake, the fake writes the packaged schema files, and the suite finds no difference. Each cassette
is a separate case, so that the report can name the cassette.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codex_replay.plugin.base.naming import cassette_folder
from codex_replay.plugin.reporting.session import SESSION
from codex_replay.protocol import data_tables
from codex_replay.protocol.schema import bundle
from codex_replay.protocol.schema.validate import RpcChecker, Validator, Violation
from codex_replay.shell.cassettes.file import CassetteReader, cassettes_in
from codex_replay.shell.codex import schema_gen
from codex_replay.shell.files.folder import Folder


class BundleFiles(Mapping[str, bytes]):
    """The generated files by relative name (``v2/ThreadStartParams.json``), as bytes."""

    def __init__(self, files: Mapping[str, bytes], origin: str) -> None:
        self._files = dict(files)
        #: Where the files came from: "vendored", or the name of the subject that generated them.
        self.origin = origin

    def __getitem__(self, name: str) -> bytes:
        return self._files[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def json(self, name: str) -> Any:
        """Return the decoded JSON of the schema file `name`."""
        if name not in self._files:
            raise AssertionError(f"The schemas of {self.origin} have no file {name}.")
        return json.loads(self._files[name])


@dataclass(frozen=True, slots=True)
class CheckedFrame:
    """One JSON-RPC frame of a cassette: its number, its sender, its decoded value, and its faults."""

    n: int
    sender: str
    value: Any
    violations: tuple[Violation, ...]


@pytest.fixture(scope="session")
def bundle_files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> BundleFiles:
    """Return the schema files under test.

    The program that ``--app-server`` names generates the schema files; for a program that cannot, the packaged schema files
    are returned.
    """
    session = request.config.stash.get(SESSION, None)
    if session is None:
        return BundleFiles(dict(data_tables.schema()), "vendored")
    out = str(tmp_path_factory.mktemp("schema"))
    try:
        schema_gen.generate(session.subject.argv, out)
    except schema_gen.GenerateError as error:
        pytest.fail(str(error), pytrace=False)
    return BundleFiles(dict(Folder(out)), session.subject.name)


@pytest.fixture
def cassette_frames(cassette: Path) -> list[CheckedFrame]:
    """Return the JSON-RPC frames of the cassette that the case checks, each with its faults."""
    return list(checked_frames(cassette))


def checked_frames(path: Path) -> Iterator[CheckedFrame]:
    """Yield the checked JSON-RPC frames of the cassette at `path`.

    The header of the cassette names the Codex version whose schemas are used.
    """
    with CassetteReader(path) as reader:
        checker = RpcChecker(*_validator(reader.header.codex))
        for frame in reader:
            if frame.seam == "rpc" and frame.kind == "msg":
                found = checker.check("client" if frame.sender == "client" else "server", frame.value)
                yield CheckedFrame(frame.n, frame.sender, frame.value, tuple(found))


_VALIDATORS: dict[str, Validator] = {}


def _validator(version: str) -> tuple[bundle.Bundle, Validator]:
    """Return the schema bundle and the validator of `version`, built once.

    The case fails if codex-replay contains no schemas of the version.
    """
    if version not in _VALIDATORS:
        try:
            _VALIDATORS[version] = Validator(bundle.load(version))
        except bundle.BundleError as error:
            pytest.fail(str(error), pytrace=False)
    return _VALIDATORS[version].bundle, _VALIDATORS[version]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parametrize each test that uses the fixture `cassette` with all cassettes."""
    if "cassette" not in metafunc.fixturenames:
        return
    session = metafunc.config.stash.get(SESSION, None)
    given = session.settings.cassettes if session is not None else None
    folder = given or cassette_folder(Path(metafunc.module.__file__ or "."), metafunc.config.rootpath)
    paths = sorted(map(Path, cassettes_in(str(folder))[0])) if folder.exists() else []
    metafunc.parametrize("cassette", paths, ids=[path.relative_to(folder).as_posix() for path in paths])
