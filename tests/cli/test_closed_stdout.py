"""Whoever reads a verb's stdout may go (`| head -1`): then it ends as it would have ended, and says nothing of it."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from codex_replay.protocol import data_tables

ROOT = Path(__file__).parents[2]
TURN = "cassettes/app_server/test_v2/text_turn.ndjson"
#: A verb, and the status that it has when all of it is read.
VERBS = {
    "--help": 0,
    "--version": 0,
    "drift 0.92.0 less.json": 1,
    "drift --json 0.92.0 less.json": 1,
    "drift 0.92.0 0.92.0": 0,
    f"cassette show {TURN}": 0,
    f"cassette lint {TURN} bad.ndjson": 1,
    f"cassette stats {TURN}": 0,
    f"cassette diff {TURN} cassettes/app_server/test_v1/listener.ndjson": 1,
    "cassette --help": 0,
    "schema doc --check --out none": 1,
    "codex path none": 2,
    "report open none": 2,
    "run no-such-suite": 4,
    "run backend/test_auth.py -n 1 -k no_bearer": 0,
    "run backend/test_auth.py -n 1 -k no_bearer --json": 0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cassettes, a bundle that lacks a method, and a cassette with a method that there is not."""
    place = tmp_path_factory.mktemp("closed")
    (place / "cassettes").symlink_to(ROOT / "cassettes")
    (place / "none").mkdir()
    bundle = json.loads(data_tables.schema("0.92.0")[data_tables.PRIMARY])
    del bundle["definitions"]["ClientRequest"]["oneOf"][3]
    (place / "less.json").write_text(json.dumps(bundle))
    header = (ROOT / TURN).read_bytes().splitlines(keepends=True)[0]
    (place / "bad.ndjson").write_bytes(header + b'{"n":1,"t":0.0,"seam":"rpc","from":"client","msg":{"method":"no/such"}}\n')
    return place


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-c", "from codex_replay.cli.main import main; main()", *words]
    return subprocess.Popen(argv, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_whose_reader_has_gone_ends_with_its_status(folder: Path, verb: str) -> None:
    with start(folder, *verb.split()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before the first byte: that is when most fail
        said = process.stderr.read().decode()
        assert process.wait() == VERBS[verb], said
        assert not [word for word in ("Traceback", "BrokenPipe", "Broken pipe", "INTERNALERROR") if word in said]


def test_serve_ends_when_nobody_reads_what_it_tells(folder: Path) -> None:
    with start(folder, "serve", "--json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        url = json.loads(process.stdout.readline())["url"]
        process.stdout.close()
        request = urllib.request.Request(url + "/v1/responses", b'{"model":"m","input":"hi","stream":true}')
        urllib.request.urlopen(request, timeout=60).close()
        assert (process.wait(20), process.stderr.read()) == (0, b"")


def test_show_goes_on_no_longer_than_somebody_reads(tmp_path: Path) -> None:
    """A named pipe as the cassette never ends: what is shown of it does."""
    header = (ROOT / TURN).read_bytes().splitlines(keepends=True)[0]
    frame = b'{"n":%d,"t":0.0,"seam":"rpc","from":"client","msg":{"method":"m"}}\n'
    os.mkfifo(tmp_path / "endless")
    with start(tmp_path, "cassette", "show", "endless") as process, open(tmp_path / "endless", "wb", buffering=0) as pipe:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        with pytest.raises(BrokenPipeError):
            pipe.writelines(itertools.chain([header], (frame % n for n in range(1, 1_000_000))))
        assert (process.wait(20), process.stderr.read()) == (0, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("verb", ["--help", "drift 0.92.0 0.92.0", f"cassette show {TURN}"])
def test_a_stdout_that_is_full_is_a_sentence(folder: Path, verb: str) -> None:
    argv = [sys.executable, "-c", "from codex_replay.cli.main import main; main()", *verb.split()]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(argv, cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "codex-replay: writing to stdout failed (No space left on device).\n"
