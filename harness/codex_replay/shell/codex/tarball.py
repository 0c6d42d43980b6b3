"""Unpack the files of one platform from the tarball of a package.

The hash of the whole tarball is checked before any file is unpacked. Each package has a folder `vendor/<target triple>/`
with one executable named `codex`. The executable is searched in the folder, because its place depends on the version. The
tarball is read as a stream. Each path in the tarball is split and rebuilt below the target folder, so that no file is
written elsewhere. Links, sparse files, special files, and a tarball that is much larger than those of Codex are refused.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Self

from codex_replay.core.text.truncate import shortened
from codex_replay.shell.codex.errors import CodexInstallError, FlakyDownload

_BLOCK = 1 << 20
#: The size of a whole tarball after decompression (bytes; Codex 0.169.0 has 404 MB), and of its files.
MOST = 2 << 30
_MOST_FILES = 20_000
_MOST_HEADER = 1 << 20  # bytes; tarfile keeps a header in memory
_LONGEST_NAME = 255  # characters
_HEADERS = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)


class _TooLarge(Exception):
    """A tarball is too large. The message names the part that is too large."""


class _Member(tarfile.TarInfo):
    """A member whose size is checked before its content is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > _MOST_HEADER:
            raise _TooLarge(f"a header of {member.size} bytes")
        return member


def check_integrity(tarball: Path, integrity: str, spec: str) -> None:
    """Raise an error if the SHA-512 of the file differs from the hash in `integrity`.

    `integrity` is "sha512-BASE64", and may contain other hashes.
    """
    expected = [part.partition("-")[2] for part in integrity.split() if part.startswith("sha512-")]
    if not expected:
        raise CodexInstallError(
            f"The registry has no SHA-512 for {spec} (only {integrity!r}), so the download cannot be checked."
        )
    with tarball.open("rb") as file:
        digest = hashlib.file_digest(file, "sha512").digest()
    actual = base64.b64encode(digest).decode()
    if actual not in [value.partition("?")[0] for value in expected]:
        raise FlakyDownload(
            f"The download of {spec} is damaged: its SHA-512 is {actual[:12]}..., expected {expected[0][:12]}...;"
            " install again; nothing was installed."
        )


def unpack(
    tarball: Path, triple: str, into: Path, spec: str, advanced: Callable[[int], None]
) -> tuple[str, dict[str, tuple[int, str]]]:
    """Unpack the files of `triple` into the folder `into`.

    Return the binary's path and {path: (size in bytes, SHA-256 in hex)}, with paths relative to `into`. The function
    `advanced` gets the number of bytes of the tarball that were read so far.
    """
    files: dict[str, tuple[int, str]] = {}
    try:
        # tarfile's own "r|gz" takes a stream that breaks off between two files for a whole one; gzip does not.
        with (
            tarball.open("rb") as raw,
            gzip.open(raw) as plain,
            tarfile.open(fileobj=plain, mode="r|", tarinfo=_Member) as archive,
        ):
            for count, member in enumerate(archive):
                advanced(raw.tell())
                if plain.tell() + member.size > MOST:
                    raise _TooLarge(f"more than {MOST >> 20} MB")
                if count >= _MOST_FILES:
                    raise _TooLarge(f"more than {_MOST_FILES} files")
                name = _inside(member, triple, spec)
                if name is not None:
                    files[name] = _write(archive, member, into / name, lambda: advanced(raw.tell()))
            while plain.read(_BLOCK):
                if plain.tell() > MOST:
                    raise _TooLarge(f"more than {MOST >> 20} MB")
    except _TooLarge as error:
        raise CodexInstallError(f"The tarball of {spec} contains {error}; nothing was installed.") from None
    except (FileExistsError, NotADirectoryError):
        raise CodexInstallError(
            f"The tarball of {spec} contains {name!r} and another file at the same place; nothing was installed."
        ) from None
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FlakyDownload(
            f"The tarball of {spec} is cut short or damaged ({error}): install again; nothing was installed."
        ) from error
    return _find_binary(files, into, triple, spec), files


def _inside(member: tarfile.TarInfo, triple: str, spec: str) -> str | None:
    """Return the path of a tarball member below vendor/<triple>, or None if the member is in another folder."""
    path = PurePosixPath(member.name)
    strange = len(member.name) > _LONGEST_NAME or not member.name.isprintable()
    if strange or path.is_absolute() or ".." in path.parts:
        shown = shortened(member.name, _LONGEST_NAME)
        raise CodexInstallError(f"The tarball of {spec} contains the unsafe path {shown!r}; nothing was installed.")
    # npm ignores what the first folder is called; it is "package" in practice.
    if len(path.parts) < 4 or path.parts[1:3] != ("vendor", triple) or member.isdir():
        return None
    if not member.isreg() or member.issparse():
        raise CodexInstallError(
            f"The tarball of {spec} contains {member.name!r}, which is not a regular file; nothing was installed."
        )
    return str(PurePosixPath(*path.parts[3:]))


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path, advanced: Callable[[], None]) -> tuple[int, str]:
    source = archive.extractfile(member)
    assert source is not None  # only regular files get here
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with source, target.open("xb") as file:
        while block := source.read(_BLOCK):
            file.write(block)
            digest.update(block)
            size += len(block)
            advanced()
    target.chmod(0o755 if member.mode & 0o111 else 0o644)
    return size, digest.hexdigest()


def _find_binary(files: dict[str, tuple[int, str]], into: Path, triple: str, spec: str) -> str:
    """Return the path of the executable named `codex`.

    The executable is codex/codex up to version 0.139, and bin/codex from 0.140 on.
    """
    found = [name for name in files if PurePosixPath(name).name == "codex" and (into / name).stat().st_mode & 0o100]
    if len(found) != 1:
        what = "no executable named codex" if not found else f"more than one ({', '.join(sorted(found))})"
        raise CodexInstallError(f"The tarball of {spec} contains {what} for {triple}; this version cannot be installed.")
    return found[0]
