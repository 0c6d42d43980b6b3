"""Read files of a zip archive.

The path of a file in an archive is the path of the archive and the path inside the archive:
``cassettes.wheel.zip/app_server/test_v2/text_turn.ndjson``.

A wheel contains the cassettes and the schema files in archives (hatch_build.py). At the start of each run, pytest reads the
list of all installed files of a plugin's distribution, so the wheel must have few files. The archives are not unpacked:
zipimport, which every interpreter has already loaded, reads single files in them. The module zipfile is not used, because
it would add a third to the start-up time of fake-codex.
"""

from __future__ import annotations

import errno
import os
from zipimport import ZipImportError, zipimporter

#: What hatch_build.py adds to the name of a folder that it packs. Nobody keeps a copy of a folder under such a name.
SUFFIX = ".wheel.zip"


def packed(path: str) -> str:
    """Return the path of the archive that a wheel contains in place of a folder.

    If there is no archive, return the path of the folder. If both the archive and the folder exist, the archive is used, because
    the update of an older installation may leave an empty folder.
    """
    return path + SUFFIX if os.path.isfile(path + SUFFIX) else path


def read(path: str) -> bytes:
    """Return the bytes of a file in an archive. Raises the same kinds of `OSError` as `open`."""
    try:
        return zipimporter(path).get_data(path)
    except ZipImportError:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
    except OSError:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


def is_file(path: str) -> bool:
    """Return True if there is a file at the path, in a folder or in an archive."""
    if os.path.isfile(path):
        return True
    try:
        read(path)
    except OSError:
        return False
    return True


def names(path: str) -> list[str]:
    """Return the names of the files in the archive at `path`, sorted as text.

    Raises `OSError`, also if the file is not a zip file.
    """
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            return sorted(archive.namelist())
    except BadZipFile:
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from None
