"""Installing the real Codex, with a fake npm on PATH: every way it can go, and nothing left behind where it goes wrong."""

from __future__ import annotations

import base64
import errno
import fcntl
import gzip
import hashlib
import io
import json
import os
import platform
import re
import signal
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from codex_replay.cli.codex import group
from codex_replay.shell.codex import install as install_module
from codex_replay.shell.codex import npm as npm_module
from codex_replay.shell.codex import tarball as tarball_module
from codex_replay.shell.codex.cache import (
    PLATFORMS,
    Manifest,
    cache_folder,
    find_installed,
    list_installed,
    locked,
    this_platform,
)
from codex_replay.shell.codex.errors import CodexInstallError
from codex_replay.shell.codex.install import Step, ensure
from tests.support.processes import ended

TRIPLE, SUFFIX = this_platform()
CLI = (sys.executable, "-c", "from codex_replay.cli.codex import group; group(prog_name='codex-replay codex')")

# Each call is written to calls.jsonl, then answered with the next step that the plan has for its verb (the last one
# repeats). `hang` tells its process id through one pipe and waits for the other to be opened.
FAKE_NPM = """\
#!{python}
import json, os, shutil, signal, sys
from pathlib import Path
signal.alarm(60)  # whatever becomes of the test, this program ends
here = Path({here!r})
verb = sys.argv[1]
with open(here / "calls.jsonl", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
steps = json.loads((here / "plan.json").read_text())[verb]
count = sum(json.loads(line)[0] == verb for line in open(here / "calls.jsonl"))
step = steps[min(count, len(steps)) - 1]
cache = next(arg for arg in sys.argv if arg.startswith("--cache=")).partition("=")[2]
partial = Path(cache, "_cacache", "tmp", "partial")
partial.parent.mkdir(parents=True, exist_ok=True)
partial.write_bytes(b"x" * 1000)
if step.get("hang"):
    with open(here / "pid.fifo", "w") as pipe:
        pipe.write(str(os.getpid()))
    with open(here / "go.fifo"):
        pass
if step.get("stall"):
    signal.pause()
if step.get("signal"):
    os.kill(os.getpid(), step["signal"])
if step.get("copy"):
    shutil.copy(step["copy"], "package.tgz")
sys.stdout.write(step.get("out", ""))
sys.stderr.write(step.get("err", ""))
sys.exit(step.get("status", 0))
"""


def npm_error(code: str, summary: str = "something happened") -> dict[str, Any]:
    error = {"code": code, "summary": summary, "detail": ""}
    return {"out": json.dumps({"error": error}), "err": f"npm error code {code}\n", "status": 1}


def make_tarball(path: Path, members: dict[str, bytes | tarfile.TarInfo], executable: str = r"/(codex|rg|bwrap)$") -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            if isinstance(content, tarfile.TarInfo):
                archive.addfile(content)
                continue
            member = tarfile.TarInfo(name)
            member.size = len(content)
            member.mode = 0o755 if re.search(executable, name) else 0o644
            archive.addfile(member, io.BytesIO(content))
    return path


def integrity_of(path: Path) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()


class FakeNpm:
    """The fake npm program, its plan, and the calls that were made."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir()
        self.program = self.bin / "npm"
        self.program.write_text(FAKE_NPM.format(python=sys.executable, here=str(root)))
        self.program.chmod(0o755)
        self.steps: dict[str, list[dict[str, Any]]] = {"view": [], "pack": []}
        for name in ("pid.fifo", "go.fifo"):
            os.mkfifo(root / name)

    def plan(self, verb: str, *steps: dict[str, Any]) -> None:
        self.steps[verb] = list(steps)
        (self.root / "plan.json").write_text(json.dumps(self.steps))

    def calls(self, verb: str = "") -> list[list[str]]:
        log = self.root / "calls.jsonl"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if line[0].startswith(verb)]

    def publish(self, tarball: Path, version: str = "0.92.0", integrity: str | None = None) -> dict[str, Any]:
        """Make one package carry everything, as up to 0.98; returns the step that packs it."""
        value = {"name": "@openai/codex", "version": version, "dist.integrity": integrity or integrity_of(tarball)}
        self.plan("view", {"out": json.dumps(value)})
        self.plan("pack", {"copy": str(tarball), "out": "[]"})
        return self.steps["pack"][0]

    def publish_split(self, tarball: Path, version: str = "0.141.0") -> None:
        names = {suffix: f"npm:@openai/codex@{version}-{suffix}" for _, suffix in PLATFORMS.values()}
        main = {
            "version": version,
            "dist.integrity": "sha512-AAAA",
            "optionalDependencies": {f"@openai/codex-{suffix}": alias for suffix, alias in names.items()},
        }
        own = {"version": f"{version}-{SUFFIX}", "dist.integrity": integrity_of(tarball)}
        self.plan("view", {"out": json.dumps(main)}, {"out": json.dumps(own)})
        self.plan("pack", {"copy": str(tarball), "out": "[]"})

    def hanging_pid(self) -> int:
        """Wait until the fake npm hangs; its process id."""
        with (self.root / "pid.fifo").open() as pipe:
            return int(pipe.read())

    def let_go(self) -> None:
        with (self.root / "go.fifo").open("w"):
            pass


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_REPLAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(install_module, "RETRY_DELAY", 0.0)
    return tmp_path / "cache"


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNpm:
    (tmp_path / "npm").mkdir()
    fake = FakeNpm(tmp_path / "npm")
    monkeypatch.setenv("PATH", str(fake.bin))
    return fake


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A package that carries all platforms, as up to 0.98."""
    members: dict[str, bytes | tarfile.TarInfo] = {"package/package.json": b"{}", "package/bin/codex": b"no"}
    for triple, _ in [*PLATFORMS.values(), ("x86_64-pc-windows-msvc", "")]:
        members[f"package/vendor/{triple}/codex/codex"] = b"binary for " + triple.encode()
        members[f"package/vendor/{triple}/path/rg"] = b"rg for " + triple.encode()
    return make_tarball(tmp_path / "old.tgz", members)


def leftovers(cache: Path) -> list[str]:
    """Everything in the cache but whole installed versions."""
    return sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.name != "codex" or path.is_file())


def cli(*arguments: str) -> Result:
    return CliRunner().invoke(group, arguments)


# ---- what is installed ------------------------------------------------------------------------------------------------


def test_an_old_package_gives_the_files_of_this_platform_and_no_others(npm: FakeNpm, old: Path, cache: Path) -> None:
    npm.publish(old)
    binary = ensure("0.92.0")
    assert binary == find_installed("0.92.0") == cache / "codex" / f"0.92.0-{TRIPLE}" / "codex" / "codex"
    assert binary.read_bytes() == b"binary for " + TRIPLE.encode()
    assert (binary.parents[1] / "path" / "rg").read_bytes() == b"rg for " + TRIPLE.encode()
    assert stat.S_IMODE(binary.stat().st_mode) == 0o755
    files = sorted(str(path.relative_to(cache)) for path in cache.rglob("*") if path.is_file())
    place = f"codex/0.92.0-{TRIPLE}"
    assert files == [f"{place}/codex/codex", f"{place}/manifest.json", f"{place}/path/rg"]


def test_the_manifest_says_what_it_is_and_where_it_came_from(npm: FakeNpm, old: Path) -> None:
    npm.publish(old)
    folder = ensure("0.92.0").parents[1]
    value = json.loads((folder / "manifest.json").read_bytes())
    assert (value["version"], value["package"], value["triple"]) == ("0.92.0", "@openai/codex@0.92.0", TRIPLE)
    assert value["integrity"] == integrity_of(old)
    assert value["sha256"] == hashlib.sha256(b"binary for " + TRIPLE.encode()).hexdigest()


def test_a_split_package_is_found_by_its_alias_and_the_binary_by_looking(npm: FakeNpm, tmp_path: Path) -> None:
    """A split package is found by its alias and the binary by looking. (REAL-118, REAL-123)"""
    names = (f"vendor/{TRIPLE}/bin/codex", f"vendor/{TRIPLE}/codex-resources/bwrap", f"vendor/{TRIPLE}/codex-package.json")
    npm.publish_split(make_tarball(tmp_path / "split.tgz", {f"package/{name}": name.encode() for name in names}))
    binary = ensure("0.141.0")
    assert binary.parts[-2:] == ("bin", "codex")
    assert (binary.parents[1] / "codex-resources" / "bwrap").is_file()
    assert [call[1] for call in npm.calls("view")] == ["@openai/codex@0.141.0", f"@openai/codex@0.141.0-{SUFFIX}"]
    assert npm.calls("pack")[0][1] == f"@openai/codex@0.141.0-{SUFFIX}"


@pytest.mark.parametrize(("machine", "triple", "suffix"), [(key, *value) for key, value in PLATFORMS.items()])
def test_each_platform_gets_its_own_binary(
    machine: tuple[str, str], triple: str, suffix: str, npm: FakeNpm, old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: machine[0])
    monkeypatch.setattr(platform, "machine", lambda: machine[1])
    npm.publish(old)
    assert ensure("0.92.0").read_bytes() == b"binary for " + triple.encode()
    assert this_platform() == (triple, suffix)


def test_a_second_call_runs_no_npm_and_writes_nothing(
    npm: FakeNpm, old: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    npm.publish(old)
    binary = ensure("0.92.0")
    before = {path: path.stat().st_mtime_ns for path in cache.rglob("*")}
    monkeypatch.setenv("PATH", "")
    steps: list[Step] = []
    assert ensure("0.92.0", steps.append) == binary
    assert steps == []
    assert {path: path.stat().st_mtime_ns for path in cache.rglob("*")} == before


def test_progress_goes_through_its_stages(npm: FakeNpm, old: Path) -> None:
    npm.publish(old)
    steps: list[Step] = []
    ensure("0.92.0", steps.append)
    assert list(dict.fromkeys(step.stage for step in steps)) == ["resolve", "download", "check", "unpack"]
    assert steps[-1].total == old.stat().st_size


# ---- damage -----------------------------------------------------------------------------------------------------------


def test_a_binary_damaged_without_a_change_of_size_is_told_by_its_hash(npm: FakeNpm, old: Path) -> None:
    npm.publish(old)
    binary = ensure("0.92.0")
    good = binary.read_bytes()
    binary.write_bytes(good[:-1] + b"X")
    steps: list[Step] = []
    assert ensure("0.92.0", steps.append).read_bytes() == good
    assert steps[0].stage == "damaged"
    assert "SHA-256" in steps[0].text


@pytest.mark.parametrize("name", ["codex/codex", "path/rg", "manifest.json"])
@pytest.mark.parametrize("how", ["cut", "gone"])
def test_a_missing_or_cut_file_makes_it_not_installed(name: str, how: str, npm: FakeNpm, old: Path) -> None:
    npm.publish(old)
    victim = ensure("0.92.0").parents[1] / name
    if how == "gone":
        victim.unlink()
    else:
        victim.write_bytes(victim.read_bytes()[:-3])
    assert find_installed("0.92.0") is None
    assert find_installed("0.92.0") is None if name == "manifest.json" else list_installed()[0].problem is not None
    ensure("0.92.0")
    assert find_installed("0.92.0") is not None


def test_a_binary_that_may_not_be_executed_is_not_installed(npm: FakeNpm, old: Path) -> None:
    npm.publish(old)
    ensure("0.92.0").chmod(0o644)
    assert find_installed("0.92.0") is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
fields = st.fixed_dictionaries(
    {"manifest": st.just(1), "binary": st.text(max_size=3), "files": json_values}, optional={"version": json_values}
)


@given(st.binary(max_size=50) | (json_values | fields).map(lambda value: json.dumps(value).encode()))
def test_no_manifest_however_odd_gives_anything_but_a_plain_refusal(data: bytes) -> None:
    with pytest.raises((ValueError, LookupError, TypeError, AttributeError)):
        Manifest.decode(data)


@pytest.mark.parametrize("name", ["../codex", "/bin/sh", "a/../../codex"])
def test_a_manifest_cannot_point_outside_of_its_folder(name: str) -> None:
    manifest = Manifest("1.0.0", "p", "i", "t", name, {name: (1, "00")})
    with pytest.raises(ValueError, match="outside"):
        Manifest.decode(manifest.encode())


# ---- npm and the network ----------------------------------------------------------------------------------------------


def test_no_npm(npm: FakeNpm, cache: Path) -> None:
    npm.program.unlink()
    with pytest.raises(CodexInstallError, match=r"npm was not found on PATH: install Node\.js"):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_an_npm_that_cannot_be_started(npm: FakeNpm, cache: Path) -> None:
    npm.program.write_text("#!/nowhere/node\n")
    with pytest.raises(CodexInstallError, match=r"npm could not be started .*: repair the Node\.js installation"):
        ensure("0.92.0")
    assert leftovers(cache) == []


@pytest.mark.parametrize("verb", ["view", "pack"])
@pytest.mark.parametrize(
    ("step", "sentence", "attempts"),
    [
        (npm_error("E404"), "There is no Codex version 0.92.0 in the npm registry", 1),
        (npm_error("ETARGET"), "There is no Codex version 0.92.0 in the npm registry", 1),
        (npm_error("EAI_AGAIN"), "The npm registry could not be reached", 3),
        (npm_error("ECONNREFUSED"), "The npm registry could not be reached", 3),
        (npm_error("E503"), "E503 (something happened): install again", 3),
        (npm_error("EINTEGRITY"), "The download of @openai/codex@0.92.0 failed, EINTEGRITY", 3),
        (npm_error("ENOSPC"), "is full. Free about 500 MB", 1),
        (npm_error("E401", "log in.\nmore"), "npm could not fetch @openai/codex@0.92.0: E401 (log in); nothing", 1),
        ({"err": "npm ERR! code ENOTFOUND\nnpm ERR! x\n", "status": 1}, "could not be reached", 3),
        ({"err": "node: too old\n", "status": 7}, "exit status 7 (node: too old)", 1),
        ({"out": "[]", "err": "\udcff\n".encode("utf-8", "replace").decode(), "status": 1}, "exit status 1", 1),
        ({"signal": int(signal.SIGTERM)}, "npm was ended by signal 15", 3),
    ],
)
def test_an_error_of_npm_is_one_sentence_and_leaves_nothing(
    verb: str, step: dict[str, Any], sentence: str, attempts: int, npm: FakeNpm, old: Path, cache: Path
) -> None:
    npm.publish(old)
    npm.plan(verb, step)
    with pytest.raises(CodexInstallError) as caught:
        ensure("0.92.0")
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(npm.calls(verb)) == attempts
    assert leftovers(cache) == []
    assert find_installed("0.92.0") is None


def test_a_download_that_fails_twice_is_made_a_third_time(npm: FakeNpm, old: Path) -> None:
    good = npm.publish(old)
    npm.plan("pack", npm_error("ECONNRESET"), npm_error("E502"), good)
    steps: list[Step] = []
    assert ensure("0.92.0", steps.append).is_file()
    assert [step.text[:21] for step in steps if step.stage == "retry"] == ["Attempt 1 of 3 failed", "Attempt 2 of 3 failed"]


def test_a_download_that_stands_still_is_ended(npm: FakeNpm, old: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm_module, "_STALL_SECONDS", 0.2)
    monkeypatch.setattr(install_module, "ATTEMPTS", 1)
    npm.publish(old)
    npm.plan("pack", {"stall": True})
    with pytest.raises(CodexInstallError, match="received nothing for"):
        ensure("0.92.0")
    assert leftovers(cache) == []


@pytest.mark.parametrize(("most", "memory"), [(900, 0), (5000, 6000)], ids=["download", "memory"])
def test_an_answer_of_a_registry_that_never_ends_is_refused(
    most: int, memory: int, npm: FakeNpm, old: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npm_module, "_MOST", most)
    monkeypatch.setattr(npm_module, "_resident", lambda pid: memory)
    monkeypatch.setattr(npm_module, "_POLL_SECONDS", 0.01)
    monkeypatch.setattr(npm_module, "_STALL_SECONDS", 20.0)
    npm.publish(old)
    npm.plan("view", {"stall": True})
    with pytest.raises(CodexInstallError, match=r"The npm registry sent more than 0 MB for @openai/codex@0\.92\.0"):
        ensure("0.92.0")
    assert npm.calls("pack") == []
    assert leftovers(cache) == []


@pytest.mark.parametrize("out", ["", "not json", "[]", "{}", '{"dist.integrity": 5}', '"0.92.0"'])
def test_an_answer_of_npm_without_an_integrity_is_refused(out: str, npm: FakeNpm, cache: Path) -> None:
    npm.plan("view", {"out": out})
    with pytest.raises(CodexInstallError, match="has no integrity hash"):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_an_npm_that_packs_nothing(npm: FakeNpm, old: Path, cache: Path) -> None:
    npm.publish(old)
    npm.plan("pack", {"out": "[]"})
    with pytest.raises(CodexInstallError, match="left no tarball"):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_a_version_without_a_binary_for_this_platform(npm: FakeNpm, cache: Path) -> None:
    other = {"dist.integrity": "sha512-AAAA", "optionalDependencies": {"@openai/codex-plan9": "npm:@openai/codex@1-plan9"}}
    npm.plan("view", {"out": json.dumps(other)})
    with pytest.raises(CodexInstallError, match="published without a binary for this platform"):
        ensure("0.141.0")
    assert leftovers(cache) == []


# ---- the tarball ------------------------------------------------------------------------------------------------------


def test_a_tarball_that_is_not_the_published_one(npm: FakeNpm, old: Path, tmp_path: Path, cache: Path) -> None:
    other = make_tarball(tmp_path / "other.tgz", {f"package/vendor/{TRIPLE}/codex/codex": b"evil"})
    npm.publish(other, integrity=integrity_of(old))
    with pytest.raises(CodexInstallError, match="is damaged: its SHA-512 is"):
        ensure("0.92.0")
    assert len(npm.calls("pack")) == 3
    assert leftovers(cache) == []


@pytest.mark.parametrize("integrity", ["sha1-AAAA", "nonsense", " "])
def test_an_integrity_that_proves_nothing_is_refused(integrity: str, npm: FakeNpm, old: Path) -> None:
    npm.publish(old, integrity=integrity)
    with pytest.raises(CodexInstallError, match="has no SHA-512"):
        ensure("0.92.0")


def test_a_sha512_among_other_hashes_and_with_options_counts(npm: FakeNpm, old: Path) -> None:
    npm.publish(old, integrity=f"sha1-AAAA {integrity_of(old)}?option")
    assert ensure("0.92.0").is_file()


@pytest.mark.parametrize("keep", [0, 1, 10, 100, -100, -12])
def test_a_tarball_published_truncated(keep: int, npm: FakeNpm, old: Path, tmp_path: Path, cache: Path) -> None:
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(old.read_bytes()[:keep])
    npm.publish(cut)
    with pytest.raises(CodexInstallError):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_a_truncated_download_is_made_again(npm: FakeNpm, old: Path, tmp_path: Path) -> None:
    good = npm.publish(old)
    cut = tmp_path / "cut.tgz"
    cut.write_bytes(old.read_bytes()[:-20])
    npm.plan("pack", {"copy": str(cut), "out": "[]"}, good)
    assert ensure("0.92.0").is_file()


def link(name: str, kind: bytes) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, "/etc/passwd"
    return member


def nul(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.pax_headers = {"path": f"{name}\0x"}
    return member


def sparse(name: str, size: int) -> tarfile.TarInfo:
    """Return a member that has one byte, and is `size` bytes long when it is unpacked."""
    member = tarfile.TarInfo(name)
    member.pax_headers = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": name}
    member.pax_headers |= {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(size)}
    member.mode = 0o755
    return member


BINARY = f"package/vendor/{TRIPLE}/codex/codex"


@pytest.mark.parametrize(
    ("members", "sentence"),
    [
        ({BINARY: b"x", "package/../../evil": b"x"}, "contains the unsafe path 'package/../../evil'"),
        ({BINARY: b"x", "/evil": b"x"}, "contains the unsafe path '/evil'"),
        ({BINARY: b"x", f"package/vendor/{TRIPLE}/../evil": b"x"}, "contains the unsafe path"),
        ({BINARY: link(BINARY, tarfile.SYMTYPE)}, "which is not a regular file"),
        ({BINARY: link(BINARY, tarfile.LNKTYPE)}, "which is not a regular file"),
        ({BINARY: link(BINARY, tarfile.FIFOTYPE)}, "which is not a regular file"),
        ({BINARY: b"x", f"package/vendor/{TRIPLE}/codex": b"x"}, "'codex' and another file at the same place"),
        ({f"package/vendor/{TRIPLE}/codex": b"x", BINARY: b"x"}, "'codex/codex' and another file at the same place"),
        ({BINARY: b"x", f"package/./vendor/{TRIPLE}/codex/codex": b"y"}, "another file at the same place"),
        ({BINARY: b"x", f"package/vendor/{TRIPLE}/{'n' * 256}": b"x"}, "contains the unsafe path"),
        ({BINARY: b"x", f"package/{'d/' * 3000}x": b"x"}, "contains the unsafe path"),
        ({BINARY: b"x", f"package/vendor/{TRIPLE}/\x1b]0;x\x07": b"x"}, "contains the unsafe path"),
        ({BINARY: nul(BINARY)}, "contains the unsafe path"),
        ({BINARY: sparse(BINARY, 1 << 20)}, "which is not a regular file"),
        ({"package/vendor/other/codex/codex": b"x"}, f"no executable named codex for {TRIPLE}"),
        ({BINARY + ".txt": b"x"}, "no executable named codex"),
        ({BINARY: b"x", f"package/vendor/{TRIPLE}/bin/codex": b"y"}, "more than one (bin/codex, codex/codex)"),
    ],
)
def test_a_tarball_that_is_not_as_it_should_be(
    members: dict[str, bytes | tarfile.TarInfo], sentence: str, npm: FakeNpm, tmp_path: Path, cache: Path
) -> None:
    npm.publish(make_tarball(tmp_path / "odd.tgz", members))
    with pytest.raises(CodexInstallError, match=re.escape(sentence)):
        ensure("0.92.0")
    assert leftovers(cache) == []
    assert not list(tmp_path.rglob("evil"))


def header(kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (header(tarfile.XHDTYPE, 3 << 30) + bytes(4096), "a header of 3221225472 bytes"),
        (header(tarfile.XGLTYPE, 3 << 30) + bytes(4096), "a header of 3221225472 bytes"),
        (header(tarfile.GNUTYPE_LONGNAME, 3 << 30) + bytes(4096), "a header of 3221225472 bytes"),
        (header(tarfile.GNUTYPE_LONGLINK, 3 << 30) + bytes(4096), "a header of 3221225472 bytes"),
        (header(tarfile.REGTYPE, 3 << 30) + bytes(4096), "more than 2048 MB"),
        (header(tarfile.REGTYPE, 0) * 20_001, "more than 20000 files"),
    ],
)
def test_a_tarball_that_is_too_large(data: bytes, sentence: str, npm: FakeNpm, tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "large.tgz"
    path.write_bytes(gzip.compress(data))
    npm.publish(path)
    with pytest.raises(CodexInstallError, match=re.escape(sentence)):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_a_tarball_that_never_ends(npm: FakeNpm, old: Path, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Zeros after the last file."""
    monkeypatch.setattr(tarball_module, "MOST", 1 << 20)
    path = tmp_path / "endless.tgz"
    path.write_bytes(gzip.compress(gzip.decompress(old.read_bytes()) + bytes(3 << 20)))
    npm.publish(path)
    with pytest.raises(CodexInstallError, match="more than 1 MB"):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_a_tarball_that_is_no_tarball(npm: FakeNpm, tmp_path: Path, cache: Path) -> None:
    path = tmp_path / "no.tgz"
    path.write_bytes(gzip.compress(b"hello" * 1000))
    npm.publish(path)
    with pytest.raises(CodexInstallError, match="is cut short or damaged"):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_a_tarball_is_read_to_its_last_byte(npm: FakeNpm, old: Path, tmp_path: Path, cache: Path) -> None:
    padded = gzip.compress(gzip.decompress(old.read_bytes()) + bytes(1_000_000))
    path = tmp_path / "padded.tgz"
    path.write_bytes(padded)
    npm.publish(path)
    assert ensure("0.92.0").is_file()
    path.write_bytes(padded[:-1] + bytes([padded[-1] ^ 1]))
    npm.publish(path, "0.93.0")
    with pytest.raises(CodexInstallError, match="is cut short or damaged"):
        ensure("0.93.0")
    assert find_installed("0.93.0") is None


# ---- this machine -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [("Windows", "AMD64"), ("Linux", "riscv64"), ("", "")])
def test_an_unsupported_platform(where: tuple[str, str], npm: FakeNpm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: where[0])
    monkeypatch.setattr(platform, "machine", lambda: where[1])
    with pytest.raises(CodexInstallError, match=r"There is no Codex binary for .*: use Linux or macOS"):
        ensure("0.92.0")
    assert npm.calls() == []


@pytest.mark.parametrize("version", ["", "latest", "^0.92.0", "0.92", "v0.92.0", "../0.92.0", "--force", "0.92.0 ", "0.92.0\n"])
def test_what_is_no_version_is_told_before_anything_happens(version: str, npm: FakeNpm, cache: Path) -> None:
    with pytest.raises(CodexInstallError, match="is not a Codex version: give the full number"):
        ensure(version)
    assert npm.calls() == []
    assert not cache.exists()


def test_a_cache_folder_that_cannot_be_written(npm: FakeNpm, cache: Path) -> None:
    cache.write_text("a file stands where the folder should be")
    with pytest.raises(CodexInstallError, match=r"The cache folder .* cannot be written .* CODEX_REPLAY_CACHE"):
        ensure("0.92.0")
    assert npm.calls() == []
    assert list_installed() == []


def test_a_disk_that_fills_up_while_unpacking(npm: FakeNpm, old: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> tuple[int, str]:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarball_module, "_write", full)
    npm.publish(old)
    with pytest.raises(CodexInstallError, match=r"is full\. Free about 500 MB"):
        ensure("0.92.0")
    assert leftovers(cache) == []


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.setenv("CODEX_REPLAY_CACHE", "/chosen")
    assert cache_folder() == Path("/chosen")
    monkeypatch.setenv("CODEX_REPLAY_CACHE", "")
    assert cache_folder() == Path("/xdg/codex-replay")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "codex-replay"


def test_whoever_waited_for_the_lock_holds_it_against_the_next(tmp_path: Path) -> None:
    # The first holder removes the lock file; what the second holds must still be the file that the third will open.
    waiting, holding, done = threading.Event(), threading.Event(), threading.Event()

    def second() -> None:
        with locked(tmp_path / "place", waiting.set):
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=second)
    with locked(tmp_path / "place", lambda: None):
        thread.start()
        assert waiting.wait(30)
    assert holding.wait(30)
    try:
        with (tmp_path / ".lock-place").open("ab") as third, pytest.raises(BlockingIOError):
            fcntl.flock(third, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        done.set()
        thread.join(30)
    assert list(tmp_path.iterdir()) == []


# ---- as a program: interrupts, two at once, what is printed ---------------------------------------------------------------


@pytest.fixture
def started(npm: FakeNpm, old: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """Installs started by a test; each is ended with it."""
    good = npm.publish(old)
    npm.plan("pack", {**good, "hang": True}, good)
    running: list[subprocess.Popen[str]] = []
    yield running
    for process in running:
        with process:
            process.kill()


def start(started: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    command = [*CLI, "install", "0.92.0"]
    started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    return started[-1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_download_leaves_no_file_and_no_process(
    number: signal.Signals, started: list[subprocess.Popen[str]], npm: FakeNpm, cache: Path
) -> None:
    process = start(started)
    npm_pid = npm.hanging_pid()
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert out == ""
    assert "The install of Codex 0.92.0 was interrupted, and nothing was installed." in err
    assert "Traceback" not in err
    assert leftovers(cache) == []
    assert ended(npm_pid)


def test_an_interrupted_npm_is_waited_for(npm: FakeNpm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Popen itself does not wait after KeyboardInterrupt, and the killed npm would outlive the command."""
    npm.plan("pack", {"hang": True})
    pids: list[int] = []

    def interrupted(self: npm_module.Npm, process: subprocess.Popen[bytes], verb: str, spec: str) -> None:
        pids.append(process.pid)
        process._sigint_wait_secs = 0  # what communicate() leaves behind
        raise KeyboardInterrupt

    monkeypatch.setattr(npm_module.Npm, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        npm_module.Npm(str(npm.program), tmp_path, lambda spec, size: None).pack("@openai/codex@0.92.0")
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], 0)


def test_what_a_killed_install_left_is_removed_by_the_next(
    started: list[subprocess.Popen[str]], npm: FakeNpm, cache: Path
) -> None:
    process = start(started)
    npm_pid = npm.hanging_pid()
    process.kill()
    process.communicate(timeout=30)
    os.kill(npm_pid, signal.SIGKILL)
    assert [name for name in leftovers(cache) if "/.tmp-" in name]
    binary = ensure("0.92.0")
    assert find_installed("0.92.0") == binary
    assert not [name for name in leftovers(cache) if "/." in name]


def test_two_installs_at_once_download_once(started: list[subprocess.Popen[str]], npm: FakeNpm) -> None:
    first = start(started)
    npm.hanging_pid()
    second = start(started)
    assert second.stderr
    assert second.stderr.readline() == "Waiting for another install of Codex 0.92.0 to end\n"
    npm.let_go()
    results = [process.communicate(timeout=30)[0] for process in (first, second)]
    assert [first.returncode, second.returncode] == [0, 0]
    assert results == [f"{find_installed('0.92.0')}\n"] * 2
    assert len(npm.calls("pack")) == 1


def test_a_failed_install_does_not_stop_the_one_that_waits(started: list[subprocess.Popen[str]], npm: FakeNpm) -> None:
    first = start(started)
    npm.hanging_pid()
    second = start(started)
    assert second.stderr
    assert second.stderr.readline().startswith("Waiting")
    first.send_signal(signal.SIGINT)
    assert second.communicate(timeout=30)[0] == f"{find_installed('0.92.0')}\n"
    assert (first.wait(timeout=30), second.returncode) == (2, 0)


def test_install_list_and_path(npm: FakeNpm, old: Path) -> None:
    assert "No Codex is installed" in cli("list").stderr
    npm.publish(old)
    installed = cli("install", "0.92.0")
    assert installed.exit_code == 0
    assert installed.stdout == cli("path", "0.92.0").stdout == f"{find_installed('0.92.0')}\n"
    assert "Downloading @openai/codex@0.92.0" in installed.stderr
    assert cli("list").stdout.split()[:2] == ["0.92.0", TRIPLE]
    row = json.loads(cli("list", "--json").stdout)
    assert (row["version"], row["problem"]) == ("0.92.0", None)
    Path(row["path"]).unlink()
    assert "damaged: codex/codex is missing" in cli("list").stdout


def test_for_machines_each_line_is_json(npm: FakeNpm, old: Path) -> None:
    npm.publish(old)
    rows = [json.loads(line) for line in cli("install", "0.92.0", "--json").stdout.splitlines()]
    assert [row["event"] for row in rows] == ["resolve", "download", "check", "unpack", "installed"]
    assert rows[-1]["path"] == str(find_installed("0.92.0"))


@pytest.mark.parametrize("arguments", [["install", "0.92.0"], ["install", "latest"], ["path", "0.92.0"], ["path", "x"]])
def test_a_failure_is_a_sentence_and_exit_status_2(arguments: list[str], npm: FakeNpm) -> None:
    npm.plan("view", npm_error("E404"))
    done = subprocess.run([*CLI, *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in done.stderr


def test_a_failure_for_machines_is_json_too(npm: FakeNpm) -> None:
    npm.plan("view", npm_error("E404"))
    done = cli("install", "0.92.0", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "error"


def test_versions_are_listed_in_their_order(npm: FakeNpm, old: Path) -> None:
    for version in ("0.100.0", "0.93.0", "0.93.0-alpha.2", "0.92.0"):
        npm.publish(old, version)
        ensure(version)
    assert [it.version for it in list_installed()] == ["0.92.0", "0.93.0-alpha.2", "0.93.0", "0.100.0"]
