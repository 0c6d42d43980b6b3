"""Run a real Codex to write its schema files, and compare two sets of schema files.

Codex needs no account, configuration or network to write its schema files. Codex therefore runs with an empty home
directory, and gets only PATH from the caller's environment. Files are compared as bytes. A difference is a sentence with
the first line in which two files differ.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codex_replay.protocol import data_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class GenerateError(RuntimeError):
    """Codex did not write its schema files. The message of a `GenerateError` names the command and its result."""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """One file in which two sets of schema files differ. `what` is a sentence about the difference."""

    name: str
    what: str


def generate(server: Sequence[str], out: str, *, experimental: bool = False, timeout: float = 60.0) -> None:
    """Run ``<server> generate-json-schema --out OUT`` with an empty home directory.

    `server` is the command that starts an app-server (``["codex", "app-server"]``). `timeout` is the time limit for the
    command, in seconds. With `experimental`, the command also writes the schemas for clients with the experimental
    capability (from 0.95 on). Raises `GenerateError` if the command cannot be started, does not end in time, fails, or
    writes nothing.
    """
    codex = " ".join(server)
    command = [*server, "generate-json-schema", "--out", os.path.abspath(out), *(["--experimental"] if experimental else [])]
    with tempfile.TemporaryDirectory(prefix="codex-schema-") as work:
        home, temporary = os.path.join(work, "home"), os.path.join(work, "tmp")
        os.mkdir(home)
        os.mkdir(temporary)
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": home, "CODEX_HOME": home, "TMPDIR": temporary}
        try:
            done = subprocess.run(
                command, env=environment, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout
            )
        except OSError as error:
            raise GenerateError(f"{codex} cannot be started: {error.strerror}.") from None
        except subprocess.TimeoutExpired:
            raise GenerateError(f"{codex} did not write its schemas within {timeout:g} seconds.") from None
    if done.returncode != 0:
        message = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or ["nothing on stderr"]
        raise GenerateError(f"{codex} ended with status {done.returncode} and wrote no schemas: {message[0]}")
    if not os.path.exists(os.path.join(out, data_tables.PRIMARY)):
        raise GenerateError(f"{codex} wrote no {data_tables.PRIMARY} into {out}.")


def compare(
    expected: Iterable[tuple[str, bytes]], found: Iterable[tuple[str, bytes]], names: tuple[str, str]
) -> list[FileDifference]:
    """Return the files in which two sets of schema files differ, sorted by name. The list is empty if all schema files are equal.

    `names` are the names of the two sets in the returned sentences, for example ``("vendored", "generated")``.
    """
    left, right = dict(expected), dict(found)
    differences = []
    for name in sorted({*left, *right}):
        if name not in right:
            differences.append(FileDifference(name, f"is {names[0]}, not {names[1]}"))
        elif name not in left:
            differences.append(FileDifference(name, f"is {names[1]}, not {names[0]}"))
        elif left[name] != right[name]:
            differences.append(FileDifference(name, _first_difference(left[name], right[name], names)))
    return differences


def _first_difference(left: bytes, right: bytes, names: tuple[str, str]) -> str:
    """Return a sentence about the first line in which `left` and `right` differ."""
    ours, theirs = left.split(b"\n"), right.split(b"\n")
    number = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    if number is None:
        number = min(len(ours), len(theirs))
    lines = [(side[number] if number < len(side) else b"<end>").decode("utf-8", "replace") for side in (ours, theirs)]
    return f"differs at line {number + 1}: {names[0]} {lines[0].strip()!r}, {names[1]} {lines[1].strip()!r}"


def manifest(files: Mapping[str, bytes]) -> str:
    """Return the sha256 manifest of `files` (relative name -> bytes), one line per file, in the form of sha256sum."""
    return "".join(f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files))


def verify_manifest(version: str) -> list[FileDifference]:
    """Return the packaged schema files of a version whose hashes differ from those in ``schema.sha256``.

    The list is empty if all hashes match.

    Raises `MissingTable` if the version has no file ``schema.sha256``.
    """
    manifest = data_tables.read("schema.sha256", version).decode("ascii")
    message = {name: digest for digest, name in (line.split() for line in manifest.splitlines())}
    real = {name: hashlib.sha256(data).hexdigest() for name, data in data_tables.schema(version).items()}
    return [
        FileDifference(name, f"has sha256 {real.get(name)}, but schema.sha256 says {message.get(name)}")
        for name in sorted({*message, *real})
        if message.get(name) != real.get(name)
    ]
