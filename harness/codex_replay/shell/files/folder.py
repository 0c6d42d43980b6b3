"""The files of a folder or an archive, as a mapping from relative name to bytes. Only one file is in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from codex_replay.shell.files import archive


class Folder(Mapping[str, bytes]):
    """All files under `root`; names use ``/`` and are sorted as text. Each look-up reads a file, so it can raise `OSError`."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.fspath(root)

    def __getitem__(self, name: str) -> bytes:
        path = f"{self.root}/{name}"
        try:
            with open(path, "rb") as file:
                return file.read()
        except NotADirectoryError:
            return archive.read(path)

    def __iter__(self) -> Iterator[str]:
        if os.path.isfile(self.root):
            return iter(archive.names(self.root))
        found: list[str] = []
        for where, _, files in os.walk(self.root):
            found += [os.path.relpath(os.path.join(where, name), self.root).replace(os.sep, "/") for name in files]
        return iter(sorted(found))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return archive.is_file(f"{self.root}/{name}")

    def size(self, name: str) -> int:
        """Return the size of a file in bytes, or -1 if the file does not exist."""
        path = f"{self.root}/{name}"
        if os.path.isfile(path):
            return os.path.getsize(path)
        return len(self[name]) if name in self else -1
