from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from codex_replay.cli.schema import group
from codex_replay.protocol import data_tables
from codex_replay.protocol.schema import bundle
from codex_replay.protocol.schema.reference import pages, slug
from codex_replay.shell.codex import schema_gen
from codex_replay.shell.files import version_data
from codex_replay.shell.files.bundle_files import load_file
from codex_replay.shell.files.folder import Folder

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "schema" / "0.92.0"


def run(*arguments: str):
    return CliRunner().invoke(group, list(arguments))


def program(path: Path, edit: str = "") -> str:
    """Write a stand-in for codex that generates the vendored files, `edit` done to the folder `out`."""
    path.write_text(
        f"#!{sys.executable}\n"
        "import os, pathlib, shutil, sys\n"
        "assert sys.argv[1:4] == ['app-server', 'generate-json-schema', '--out'], sys.argv\n"
        "assert os.environ['HOME'] == os.environ['CODEX_HOME'] and not os.listdir(os.environ['HOME'])\n"
        "assert 'SECRET' not in os.environ\n"
        "out = pathlib.Path(sys.argv[4])\n"
        f"shutil.copytree({version_data.schema_folder('0.92.0')!r}, out, dirs_exist_ok=True)\n{edit}\n"
    )
    path.chmod(0o755)
    return str(path)


@pytest.fixture
def codex(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "sk-1")
    return program(tmp_path / "codex")


def test_check_of_identical_files(codex):
    done = run("check", "0.92.0", "--codex", codex)
    assert (done.exit_code, done.output) == (0, "Codex 0.92.0: 154 files, all identical to those that the binary generates.\n")
    assert json.loads(run("check", "--codex", codex, "--json").output) == {
        "version": "0.92.0",
        "files": 154,
        "identical": True,
        "differences": [],
    }


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("(out / 'EventMsg.json').write_bytes((out / 'EventMsg.json').read_bytes() + b' ')", "EventMsg.json: differs at line"),
        ("(out / 'RequestId.json').unlink()", "RequestId.json: is vendored, not generated"),
        ("(out / 'v2' / 'New.json').write_text('{}')", "v2/New.json: is generated, not vendored"),
    ],
)
def test_check_of_other_files(tmp_path, monkeypatch, edit, sentence):
    done = run("check", "--codex", program(tmp_path / "codex", edit))
    assert done.exit_code == 1
    assert sentence in done.output
    assert "differ from those that the binary generates" in done.output
    outcome = json.loads(run("check", "--json", "--codex", program(tmp_path / "codex", edit)).output)
    assert (outcome["identical"], len(outcome["differences"])) == (False, 1)


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        ("print('bad option', file=sys.stderr); sys.exit(3)", "ended with status 3 and wrote no schemas: bad option"),
        (f"(out / {data_tables.PRIMARY!r}).unlink()", "wrote no codex_app_server_protocol.schemas.json"),
    ],
)
def test_a_codex_that_fails_is_a_sentence(tmp_path, edit, sentence):
    done = run("check", "--codex", program(tmp_path / "codex", edit))
    assert done.exit_code == 2
    assert sentence in done.output
    assert "Traceback" not in done.output


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("doc", "--out", str(tmp_path / "file" / "below"))
    assert done.exit_code == 2
    assert "check the path and its permissions" in done.output


def test_a_codex_that_is_none_is_a_sentence(tmp_path):
    done = run("check", "--codex", str(tmp_path / "absent"))
    assert (done.exit_code, "cannot be started: No such file" in done.output) == (2, True)


def test_a_codex_that_hangs_is_stopped(tmp_path):
    hangs = program(tmp_path / "codex", "import signal; signal.pause()")
    with pytest.raises(schema_gen.GenerateError, match=r"did not write its schemas within 0\.5 seconds"):
        schema_gen.generate([hangs, "app-server"], str(tmp_path / "out"), timeout=0.5)


def test_unknown_versions_are_usage_errors(tmp_path, codex, monkeypatch):
    done = run("check", "0.1.0", "--codex", codex)
    assert (done.exit_code, "No schema files of Codex 0.1.0 are packaged" in done.output) == (2, True)
    monkeypatch.setattr("codex_replay.cli.schema.find_installed", lambda version: None)
    done = run("check", "0.92.0")
    assert (done.exit_code, "codex-replay codex install 0.92.0" in done.output) == (2, True)
    done = run("doc", "0.1.0", "--out", str(tmp_path))
    assert (done.exit_code, "No bundle of Codex 0.1.0 is packaged" in done.output) == (2, True)


def test_regen_into_a_directory(tmp_path, codex):
    out = tmp_path / "fresh"
    done = run("regen", "0.92.0", "--out", str(out), "--codex", codex)
    assert done.exit_code == 0, done.output
    assert dict(Folder(out)) == dict(data_tables.schema())
    (out / "v2" / "Old.json").write_text("{}")
    outcome = json.loads(run("regen", "0.92.0", "--out", str(out), "--codex", codex, "--json").output)
    assert outcome["changed"] == ["v2/Old.json"]
    assert not (out / "v2" / "Old.json").exists()
    assert load_file(out).methods("server-request") == bundle.load().methods("server-request")


def test_regen_leaves_a_directory_with_other_files_alone(tmp_path, codex):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    done = run("regen", "0.92.0", "--out", str(tmp_path / "mine"), "--codex", codex)
    assert (done.exit_code, "notes.txt" in done.output) == (2, True)
    assert os.listdir(tmp_path / "mine") == ["notes.txt"]


def test_regen_of_the_vendored_folder_writes_the_manifest(tmp_path, codex, monkeypatch):
    data = tmp_path / "data"
    shutil.copytree(Path(version_data.schema_folder("0.92.0")).parent, data / "0.92.0")
    (data / "0.92.0" / "schema.sha256").write_text("")
    monkeypatch.setattr(version_data, "DATA", str(data))
    assert run("regen", "0.92.0", "--codex", codex).exit_code == 0
    assert schema_gen.verify_manifest("0.92.0") == []
    assert run("regen", "9.9.9", "--codex", codex).exit_code == 0
    assert data_tables.versions() == ["0.92.0", "9.9.9"]


def test_the_committed_reference_is_up_to_date():
    done = run("doc", "--out", str(DOCS), "--check")
    assert done.exit_code == 0, f"{done.output}\nRun `codex-replay schema doc` and commit what it writes."


def test_doc_check_notices_a_stale_page(tmp_path):
    assert run("doc", "--out", str(tmp_path)).exit_code == 0
    assert run("doc", "--out", str(tmp_path), "--check").exit_code == 0
    page = tmp_path / "methods" / "thread-start.md"
    page.write_text(page.read_text() + "more\n")
    done = run("doc", "--out", str(tmp_path), "--check", "--json")
    assert done.exit_code == 1
    assert json.loads(done.output)["changed"] == ["methods/thread-start.md"]
    (tmp_path / "photo.png").write_bytes(b"")
    assert run("doc", "--out", str(tmp_path)).exit_code == 2


def test_the_reference_has_a_page_for_each_method_and_event():
    made = dict(pages(bundle.load()))
    loaded = bundle.load()
    for direction in bundle.DIRECTIONS:
        for method in loaded.methods(direction):
            page = made[f"methods/{slug(method)}.md"]
            assert page.startswith(f"# {method}\n")
            assert ("client to server" if direction.startswith("client") else "server to client") in page
            assert ("## result" in page) is direction.endswith("request")
    assert {f"events/{name}.md" for name in loaded.events()} <= made.keys()
    page = made["methods/thread-start.md"]
    assert "| `dynamicTools` | array of [DynamicToolSpec](../types/DynamicToolSpec.md) or null |" in page
    assert "| `inputSchema` | anything | yes |" in made["types/DynamicToolSpec.md"]
    assert sum(len(text.encode()) for text in made.values()) < 1_000_000


def test_every_link_of_the_reference_leads_to_a_page():
    made = dict(pages(bundle.load()))
    for name, text in made.items():
        for target in [part.split(")")[0] for part in text.split("](")[1:]]:
            where = os.path.normpath(os.path.join(os.path.dirname(name), target)).replace(os.sep, "/")
            assert where in made, (name, target)


def test_a_bundle_of_ones_own_is_documented(tmp_path):
    path = tmp_path / "mine.json"
    path.write_bytes(data_tables.schema()[data_tables.PRIMARY])
    done = run("doc", "1.2.3", "--bundle", str(path), "--out", str(tmp_path / "docs"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "docs" / "README.md").read_text().startswith("# The app-server protocol of Codex 1.2.3\n")
    done = run("doc", "1.2.3", "--bundle", str(tmp_path / "docs" / "README.md"), "--out", str(tmp_path / "other"))
    assert (done.exit_code, "README.md is not a schema bundle: it is not JSON." in done.output) == (2, True)
