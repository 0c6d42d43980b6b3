"""Cassettes and schema files in an archive, as a wheel has them: the same bytes as from the folder, and loud misses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from codex_replay.cli.main import main
from codex_replay.plugin.base.naming import cassette_folder, read_only
from codex_replay.protocol.schema.bundle import BundleError
from codex_replay.shell import doctor
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader, cassettes_in, open_file
from codex_replay.shell.files import archive, version_data
from codex_replay.shell.files.bundle_files import load_file
from codex_replay.shell.files.folder import Folder
from hatch_build import pack

ROOT = Path(__file__).resolve().parents[2]
NAME = "app_server/test_v2/text_turn.ndjson"
FAKE = Path(sys.executable).with_name("fake-codex")
INITIALIZE = b'{"id":0,"method":"initialize","params":{"clientInfo":{"name":"me","title":null,"version":"1"}}}\n'


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a wheel's `packaged`, with the cassettes of one module."""
    folder = tmp_path_factory.mktemp("packaged")
    source = folder / "source" / "app_server" / "test_v2"
    source.mkdir(parents=True)
    for path in (ROOT / "cassettes" / "app_server" / "test_v2").iterdir():
        (source / path.name).write_bytes(path.read_bytes())
    (folder / "suites").mkdir()
    pack(folder / "source", folder / "cassettes.wheel.zip")
    return folder


def test_a_cassette_is_the_same_from_the_archive(packed: Path) -> None:
    inside, outside = (f"{packed / name}/{NAME}" for name in ("cassettes.wheel.zip", "source"))
    with CassetteReader(inside) as one, CassetteReader(outside) as other:
        assert [frame.raw for frame in one] == [frame.raw for frame in other]
    with open_file(inside) as file:
        assert file.read() == Path(outside).read_bytes()


def test_the_archive_lists_the_cassettes_of_the_folder(packed: Path) -> None:
    found = [cassettes_in(str(packed / name))[0] for name in ("cassettes.wheel.zip", "source")]
    assert found[0] == [path.replace("/source/", "/cassettes.wheel.zip/") for path in found[1]]
    assert len(found[0]) > 5


def test_the_suites_take_the_archive_beside_them(packed: Path) -> None:
    (packed / "cassettes").mkdir()  # an update of an older installation leaves it behind
    assert cassette_folder(packed / "suites" / "app_server" / "test_v2.py", packed) == packed / "cassettes.wheel.zip"
    case = ROOT / "suites" / "app_server" / "test_v2.py"
    assert cassette_folder(case, ROOT) == cassette_folder(case, ROOT, "unknown") == ROOT / "cassettes"


def test_the_recordings_of_another_version_are_among_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run on another version neither reads nor replaces the cassettes of the default version."""
    monkeypatch.setenv("CODEX_REPLAY_DATA", str(tmp_path))
    case = ROOT / "suites" / "app_server" / "test_v2.py"
    packaged, added = (cassette_folder(case, ROOT, version) for version in ("0.169.0", "9.9.9"))
    assert len(list(packaged.rglob("*.ndjson"))) > 300
    assert added == tmp_path / "versions" / "9.9.9" / "cassettes"
    assert (read_only(packaged), read_only(added)) == (False, True)
    assert cassette_folder(tmp_path / "tests" / "test_it.py", tmp_path, "0.169.0") == tmp_path / "cassettes"


def test_fake_codex_replays_from_the_archive_without_unpacking(packed: Path) -> None:
    before = sorted(packed.rglob("*"))
    answers = []
    for name in ("cassettes.wheel.zip", "source"):
        env = {"FAKE_CODEX_CASSETTE": f"{packed / name}/{NAME}"}
        done = subprocess.run([FAKE, "app-server"], input=INITIALIZE, env=env, capture_output=True, check=False)
        answers.append(done.stdout)
    assert json.loads(answers[0])["id"] == 0
    assert answers[0] == answers[1]
    assert sorted(packed.rglob("*")) == before


def test_show_reads_a_cassette_in_the_archive(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for name in ("cassettes.wheel.zip", "source"):
        with pytest.raises(SystemExit) as ended:
            main(["cassette", "show", f"{packed / name}/{NAME}"])
        assert not ended.value.code
        shown.append(capsys.readouterr().out.replace(str(packed / name), ""))
    assert "turn/completed" in shown[0]
    assert shown[0] == shown[1]


@pytest.mark.parametrize("name", ["app_server/test_v2/absent.ndjson", "app_server", "../source/" + NAME])
def test_what_the_archive_does_not_hold_is_missing(packed: Path, name: str) -> None:
    path = f"{packed / 'cassettes.wheel.zip'}/{name}"
    assert not archive.is_file(path)
    with pytest.raises(FileNotFoundError):
        archive.read(path)
    with pytest.raises(CassetteError, match="No such file"):
        CassetteReader(path)


def test_a_path_behind_a_file_that_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.ndjson").write_text("{}\n")
    with pytest.raises(CassetteError, match="Not a directory"):
        CassetteReader(tmp_path / "text.ndjson" / "a.ndjson")
    with pytest.raises(CassetteError, match="Not a directory"):
        cassettes_in(str(tmp_path / "text.ndjson"))


def test_the_schema_files_are_the_same_from_an_archive(tmp_path: Path) -> None:
    folder = Path(version_data.schema_folder("0.92.0"))
    pack(folder, tmp_path / "schema.wheel.zip")
    inside, outside = Folder(tmp_path / "schema.wheel.zip"), Folder(folder)
    assert dict(inside) == dict(outside)
    assert len(inside) == 154
    assert inside.size("ClientRequest.json") == outside.size("ClientRequest.json") > 0
    assert ("absent.json" in inside, inside.size("absent.json")) == (False, -1)
    assert archive.packed(str(tmp_path / "schema")) == str(tmp_path / "schema.wheel.zip")
    assert doctor.bundle(folder=str(tmp_path / "schema.wheel.zip")).well


def test_an_experimental_bundle_in_an_archive_is_a_bundle(tmp_path: Path) -> None:
    folder = version_data.schema_folder("0.169.0", experimental=True)
    pack(Path(folder), tmp_path / "schema-experimental.wheel.zip")
    inside, outside = load_file(tmp_path / "schema-experimental.wheel.zip", "0.169.0"), load_file(folder, "0.169.0")
    assert inside.sha256 == outside.sha256
    assert inside.methods("client-request") == outside.methods("client-request") != {}
    (tmp_path / "text.wheel.zip").write_text("{}")
    with pytest.raises(BundleError, match="cannot be read"):
        load_file(tmp_path / "text.wheel.zip")


def test_a_schema_file_that_the_archive_lacks_is_found(tmp_path: Path) -> None:
    (tmp_path / "schema").mkdir()
    for name, data in list(Folder(version_data.schema_folder("0.92.0")).items())[1:]:
        (tmp_path / "schema" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "schema" / name).write_bytes(data)
    pack(tmp_path / "schema", tmp_path / "schema.wheel.zip")
    assert "schema files of 0.92.0 is missing or changed" in doctor.bundle(folder=str(tmp_path / "schema.wheel.zip")).said


def test_an_archive_has_the_same_bytes_at_each_build(packed: Path, tmp_path: Path) -> None:
    pack(packed / "source", tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (packed / "cassettes.wheel.zip").read_bytes()
    with ZipFile(tmp_path / "again.zip") as file:
        assert {info.date_time[0] for info in file.infolist()} == {1980}
