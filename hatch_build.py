"""Puts the suites, the cassettes and the contract into the wheel, where `codex-replay run` finds them outside a checkout.

They go inside the package, as codex_replay/packaged/{suites,contract} and codex_replay/packaged/cassettes.wheel.zip, so that an
installation adds no top-level package `suites` to anyone's environment. The schema files and the cassettes of a version become
schema.wheel.zip, schema-experimental.wheel.zip and cassettes.wheel.zip beside its tables. An editable installation gets none of
these: it has the checkout's files, and copies would only grow old.

The archives exist because pytest reads the list of all files that a plugin's distribution installed, at the start of each run of
each user: a hundred files cost half a millisecond. codex_replay/shell/files/archive.py reads them.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DATA = "codex_replay/protocol/data"


class PackagedSuites(BuildHookInterface):  # type: ignore[type-arg]
    """The build hook; hatchling finds it by this file's name."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the folders and the archives to a wheel (version "standard"), and to nothing else."""
        if self.target_name != "wheel" or version != "standard":
            return
        root = Path(self.root)
        included = build_data["force_include"]
        for folder, name in (("suites", "suites"), ("docs/contract", "contract")):
            included[folder] = f"codex_replay/packaged/{name}"
        archives = {"codex_replay/packaged/cassettes.wheel.zip": root / "cassettes"}
        for name in ("schema*", "cassettes"):
            for folder in (root / "harness" / DATA).glob(f"*/{name}/"):
                archives[f"{DATA}/{folder.parent.name}/{folder.name}.wheel.zip"] = folder
        self._drafts = tempfile.TemporaryDirectory(prefix="codex-replay-build-")
        for number, (target, folder) in enumerate(archives.items()):
            draft = Path(self._drafts.name) / f"{number}.zip"
            pack(folder, draft)
            included[str(draft)] = target

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the archives that the wheel has copies of."""
        if hasattr(self, "_drafts"):
            self._drafts.cleanup()


def pack(folder: Path, target: Path) -> None:
    """Write all files of a folder into an archive: the same bytes whenever and wherever it is built."""
    with ZipFile(target, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = ZipInfo(path.relative_to(folder).as_posix())  # of 1980
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes(), ZIP_DEFLATED)
