"""`codex-replay record` as its user sees it: where it writes, what the header says, and its sentences."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from codex_replay.shell.cassettes.file import CassetteReader
from codex_replay.shell.codex.origin import bundle_of, version_of

PROGRAM = str(Path(sys.executable).with_name("codex-replay"))
ECHO = ["/bin/cat"]


def record(folder: Path, *args: object, said: bytes = b"hello\n", home: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "HOME": str(home or folder)}
    words = [PROGRAM, "record", *map(str, args)]
    return subprocess.run(words, input=said, capture_output=True, timeout=120, cwd=folder, env=env)


def sentence(done: subprocess.CompletedProcess[bytes]) -> str:
    text = done.stderr.decode()
    assert text.startswith("codex-replay record: ")
    assert text.count("\n") == 1
    assert text.endswith(".\n")
    assert "Traceback" not in text
    return text


def lines(path: Path) -> list[bytes]:
    with CassetteReader(path) as cassette:
        return [frame.raw for frame in cassette]


def header(path: Path):
    with CassetteReader(path) as cassette:
        return cassette.header


def test_a_second_run_keeps_the_first_recording_and_says_where_it_went(tmp_path: Path) -> None:
    for said in (b"one\n", b"two\n", b"three\n"):
        done = record(tmp_path, "--out", "run.ndjson", "--", *ECHO, said=said)
        assert (done.returncode, done.stdout) == (0, said)
        assert (said == b"one\n") == (done.stderr == b"")
    assert f"; this run is recorded to {tmp_path}/run.3.ndjson." in sentence(done)
    assert lines(tmp_path / "run.ndjson") == [b"one\n"] * 2
    assert lines(tmp_path / "run.2.ndjson") == [b"two\n"] * 2
    assert lines(tmp_path / "run.3.ndjson") == [b"three\n"] * 2


def test_a_place_that_cannot_be_written_is_told_whole_for_the_directory_is_the_clients(tmp_path: Path) -> None:
    done = record(tmp_path, "--out", "no/run.ndjson", "--", *ECHO)
    assert done.returncode == 2
    assert f"{tmp_path}/no/run.ndjson: the cassette cannot be written" in sentence(done)


def test_force_replaces_the_recording_that_is_there(tmp_path: Path) -> None:
    for said in (b"one, and a longer one\n", b"two\n"):
        done = record(tmp_path, "--out", "run.ndjson", "--force", "--", *ECHO, said=said)
        assert (done.returncode, done.stderr) == (0, b"")
    assert lines(tmp_path / "run.ndjson") == [b"two\n"] * 2
    assert os.listdir(tmp_path) == ["run.ndjson"]


def test_starts_at_the_same_moment_do_not_share_a_file(tmp_path: Path) -> None:
    words = [PROGRAM, "record", "--out", "run.ndjson", "--", *ECHO]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path) for _ in range(4)]
    for number, process in enumerate(running):
        assert process.communicate(b"%d\n" % number, timeout=120)[0] == b"%d\n" % number
    assert sorted(lines(path)[0] for path in tmp_path.iterdir()) == [b"0\n", b"1\n", b"2\n", b"3\n"]


def test_the_process_id_stands_in_the_files_name_if_asked_for(tmp_path: Path) -> None:
    words = [PROGRAM, "record", "--out", "run-{pid}.ndjson", "--", *ECHO]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as process:
        process.communicate(b"hello\n", timeout=120)
    assert os.listdir(tmp_path) == [f"run-{process.pid}.ndjson"]
    assert header(tmp_path / f"run-{process.pid}.ndjson").case == "run"


def test_what_is_no_file_is_written_to_and_stays(tmp_path: Path) -> None:
    """A link to the null device stands for the device, lest a fault of ours removes the machine's own."""
    null = tmp_path / "null"
    null.symlink_to(os.devnull)
    for extra in ([], ["--force"]):
        done = record(tmp_path, "--out", null, *extra, "--", *ECHO)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")
        assert record(tmp_path, "--out", null, *extra, "--", "no-such-program").returncode == 127
    assert os.listdir(tmp_path) == ["null"]


@pytest.mark.parametrize("out", ["missing/run.ndjson", ".", "", "a" * 300])
def test_a_file_that_cannot_be_written_starts_nothing(out: str, tmp_path: Path) -> None:
    started = tmp_path / "started"
    done = record(tmp_path, "--out", out, "--", "/bin/sh", "-c", f"> {started}; cat")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "cannot be written" in sentence(done)
    assert not started.exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_disk_that_is_full_from_the_start_starts_nothing(tmp_path: Path) -> None:
    done = record(tmp_path, "--out", "/dev/full", "--", *ECHO)
    assert (done.returncode, done.stdout) == (2, b"")
    assert "No space left" in sentence(done)


@pytest.mark.parametrize(
    ("program", "status"), [("no-such-program", 127), ("", 127), ("./none", 127), ("./plain", 126), (".", 126)]
)
def test_a_command_that_cannot_be_started_leaves_a_shells_status_and_no_file(program: str, status: int, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("not a program")
    done = record(tmp_path, "--out", "run.ndjson", "--", program, "app-server")
    assert (done.returncode, done.stdout) == (status, b"")
    assert (program or "an empty word") in sentence(done)
    assert os.listdir(tmp_path) == ["plain"]


@pytest.mark.parametrize("words", [[], ["--out", "run.ndjson"], ["--", "cat"], ["--bogus", "--out", "f", "--", "cat"]])
def test_wrong_usage_is_status_2_without_a_file(words: list[str], tmp_path: Path) -> None:
    done = record(tmp_path, *words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Usage:" in done.stderr
    assert os.listdir(tmp_path) == []


def test_the_commands_own_options_are_left_to_it_even_without_the_dashes(tmp_path: Path) -> None:
    done = record(tmp_path, "--out", "run.ndjson", "/bin/echo", "--out", "x", "-c", "k=v", "--", "--help")
    assert done.stdout == b"--out x -c k=v -- --help\n"


def test_the_header_is_the_same_each_time_and_names_the_command(tmp_path: Path) -> None:
    for name in ("a", "b"):
        record(tmp_path, "--out", f"{name}.ndjson", "--case", "mine", "--codex", "0.92.0", "--", *ECHO, said=name.encode())
    first, second = (header(tmp_path / f"{name}.ndjson") for name in ("a", "b"))
    assert (first.codex, first.case, first.origin) == ("0.92.0", "mine", {"rpc": "recorded"})
    assert re.fullmatch("sha256:[0-9a-f]{64}", first.bundle)
    assert first.extra == {"command": ["/bin/cat"]}
    assert (tmp_path / "a.ndjson").read_bytes().splitlines()[0] == (tmp_path / "b.ndjson").read_bytes().splitlines()[0]
    assert second.bundle == first.bundle


def test_a_command_of_unknown_origin_is_called_unknown(tmp_path: Path) -> None:
    record(tmp_path, "--out", "some-run.ndjson", "--", *ECHO)
    found = header(tmp_path / "some-run.ndjson")
    assert (found.codex, found.bundle, found.case) == ("unknown", "unknown", "some-run")


@pytest.mark.parametrize("name", ["fake-codex", "codex"])
def test_the_server_frames_of_a_fake_are_authored_by_whatever_name_it_is_started(name: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / name).symlink_to(Path(sys.executable).with_name("fake-codex"))
    record(tmp_path, "--out", "run.ndjson", "--", str(tmp_path / "bin" / name), "--version")
    assert header(tmp_path / "run.ndjson").origin == {"rpc": "recorded", "rpc.server": "authored"}


@pytest.mark.parametrize(
    ("facts_file", "facts", "binary"),
    [
        ("package.json", {"name": "@openai/codex", "version": "0.92.0"}, "vendor/x86_64-unknown-linux-musl/codex/codex"),
        ("package.json", {"name": "@openai/codex", "version": "0.99.0-linux-x64"}, "vendor/triple/bin/codex"),
        ("package.json", {"name": "@openai/codex", "version": "0.98.0"}, "bin/codex.js"),
        ("manifest.json", {"package": "@openai/codex@0.92.0", "version": "0.92.0"}, "codex/codex"),
        ("package.json", {"name": "other", "version": "1.2.3"}, "bin/codex"),
        ("package.json", ["no object"], "bin/codex"),
    ],
)
def test_the_version_is_read_beside_the_program(
    facts_file: str, facts: object, binary: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "package" / binary
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    (tmp_path / "package" / facts_file).write_text(json.dumps(facts))
    (tmp_path / "path").mkdir()
    (tmp_path / "path" / "codex").symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    of_codex = isinstance(facts, dict) and "@openai/codex" in str(facts)
    expected = facts["version"].removesuffix("-linux-x64") if of_codex else None
    assert version_of([str(program), "app-server"]) == expected
    assert version_of(["codex", "app-server"]) == expected
    assert version_of(["node", str(program), "app-server"]) == expected
    assert version_of(["codex-replay", "connect", "--", "codex", "app-server"]) == expected


def test_a_version_without_a_bundle_of_ours_has_none() -> None:
    assert bundle_of("0.0.0") == "unknown"


def test_this_machines_paths_do_not_stay(tmp_path: Path) -> None:
    """Neither the home nor the working directory stands in the cassette, in the header or in a frame; both still pass."""
    home, work = tmp_path / "home-of-somebody", tmp_path / "work-of-somebody"
    home.mkdir()
    work.mkdir()
    said = json.dumps({"id": 1, "method": "newConversation", "params": {"cwd": f"{work}/sub", "x": f"{home}/.codex"}}).encode()
    done = record(work, "--out", tmp_path / "run.ndjson", "--", *ECHO, f"{home}/file", "-", said=said, home=home)
    assert done.stdout == said
    text = (tmp_path / "run.ndjson").read_text()
    assert "of-somebody" not in text
    assert header(tmp_path / "run.ndjson").extra["command"] == ["/bin/cat", "/home/user/file", "-"]


def test_a_secret_in_the_arguments_does_not_stay(tmp_path: Path) -> None:
    secret = "sk-proj-" + "Zx9" * 14
    done = record(tmp_path, "--out", "run.ndjson", "--", "/bin/echo", "-c", f"experimental_bearer_token={secret}")
    assert secret.encode() in done.stdout
    assert secret not in (tmp_path / "run.ndjson").read_text()


def test_the_recorders_start_imports_nothing_heavy() -> None:
    heavy = ["rich", "asyncio", "httptools", "yaml", "deepdiff", "pytest", "shutil", "logging"]
    code = (
        f"import sys, codex_replay.cli.record, codex_replay.core.redact.redactor; print([m for m in {heavy} if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == b"[]\n"


STREAMING = r"""
import json, sys, time
def say(item, piece):
    params = {"threadId": "t", "turnId": "0", "itemId": item, "delta": piece}
    print(json.dumps({"method": "item/agentMessage/delta", "params": params}, separators=(",", ":")), flush=True)
for piece in ("It is ghp_", "abcdefghijklmnop", "qrstuvwxyzABCDEF6789."):
    say("m", piece)
say("n", "Whole: ghp_abcdefghijklmnopqrstuvwxyzABCDEF6789.")
for line in sys.stdin:
    if line.startswith("break"):
        # What was said may not be recorded yet: the recorder reads it at its own pace.
        while b'"Whole:' not in open("run.ndjson", "rb").read():
            time.sleep(0.005)
        with open("run.ndjson", "r+b") as file:
            text = file.read().replace(b'"seam"', b'"maes"')
            file.seek(0)
            file.write(text)
"""


def streaming(folder: Path, end: str = "") -> list[str]:
    """Return the command of a server that streams a secret in pieces."""
    path = folder / "server.py"
    path.write_text(STREAMING + end)
    return [sys.executable, str(path)]


def test_a_secret_that_is_streamed_in_pieces_is_taken_out_at_the_end_and_said(tmp_path: Path) -> None:
    done = record(tmp_path, "--out", "run.ndjson", "--", *streaming(tmp_path), said=b"")
    assert done.returncode == 0
    assert b"abcdefghijklmnop" in done.stdout  # what the client gets is what was said
    said = sentence(done)
    assert said == (
        f"codex-replay record: {tmp_path}/run.ndjson: the client received a secret (api-key) streamed in chunks in frames 1 to "
        "3. The cassette contains placeholders instead.\n"
    )
    found = [json.loads(line)["params"]["delta"] for line in lines(tmp_path / "run.ndjson")]
    # As the secret is called where a frame has the whole of it.
    assert found == ["It is ghp_redacted-1", "", ".", "Whole: ghp_redacted-1."]
    assert sorted(os.listdir(tmp_path)) == ["run.ndjson", "server.py"]
    assert subprocess.run([PROGRAM, "cassette", "lint", "run.ndjson"], cwd=tmp_path, capture_output=True).returncode == 0


def test_a_link_to_the_cassette_stays_one(tmp_path: Path) -> None:
    (tmp_path / "run.ndjson").symlink_to("elsewhere.ndjson")
    done = record(tmp_path, "--out", "run.ndjson", "--", *streaming(tmp_path), said=b"")
    assert "contains placeholders" in sentence(done)
    assert (tmp_path / "run.ndjson").is_symlink()
    assert b"abcdefghijklmnop" not in (tmp_path / "elsewhere.ndjson").read_bytes()


def test_a_secret_in_pieces_that_cannot_be_taken_out_is_said_with_its_place_and_the_way_out(tmp_path: Path) -> None:
    done = record(tmp_path, "--out", "run.ndjson", "--", *streaming(tmp_path, "sys.exit(3)"), said=b"break\n")
    assert done.returncode == 3  # the server's
    said = sentence(done)
    # The client's one line may stand before them, or among them.
    first = re.search(
        r"run\.ndjson, line (\d) \(frame (\d)\): it contains a secret \(api-key\) streamed in chunks in frames (\d) to", said
    )
    assert first, said
    assert int(first[1]) == int(first[2]) + 1 == int(first[3]) + 1
    assert f"codex-replay cassette redact {tmp_path}/run.ndjson --out FILE" in said
    assert "abcdef" not in said
    assert sorted(os.listdir(tmp_path)) == ["run.ndjson", "server.py"]


def test_model_is_for_an_installed_codex_alone(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('["Hello."]')
    for words in (["--", "codex", "app-server"], ["--upstream", "http://127.0.0.1:1", "--", "codex@0.92.0"], ["--upstream", "x"]):
        done = record(tmp_path, "--out", "run.ndjson", "--model", "model.json", *words)
        assert done.returncode == 2
        assert b"--model SCRIPT needs CMD codex@VERSION, and no --upstream." in done.stderr


@pytest.mark.parametrize(
    ("script", "version", "words"),
    [
        ('["Hello."]', "0.0.1", "Codex 0.0.1 is not installed: run `codex-replay codex install 0.0.1`."),
        ('["Hello."]', "new", "new"),
        ("[1]", "0.92.0", "turns[0] must be a string or an object"),
        (None, "0.92.0", "cannot be read"),
    ],
)
def test_a_model_that_cannot_play_starts_nothing(tmp_path: Path, script: str | None, version: str, words: str) -> None:
    if script is not None:
        (tmp_path / "model.json").write_text(script)
    done = record(tmp_path, "--out", "run.ndjson", "--model", "model.json", "--", f"codex@{version}")
    assert done.returncode == 2
    assert words in sentence(done)
    assert sentence(done).endswith("Codex was not started.\n")
    assert not (tmp_path / "run.ndjson").exists()
