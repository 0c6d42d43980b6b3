"""The schema bundle of any Codex version or file of the user's own, fetched and generated when it is first asked for.

Strategy: a bundle is small (a few megabytes) and its binary is not (60 to 250), so the bundle is what is kept, under
``<cache>/bundles/<version>/``, and a binary that was installed for nothing else is removed as soon as it has written its
bundle. So making the bundles of many versions never needs the room of more than one binary more. The folder is put in
place by one rename: it is whole or it is not there.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from harness.protocol import schema_files
from harness.protocol.bundle import Bundle, BundleError, load, load_file
from harness.shell.codex.cache import cache_folder, check_version, find_installed, locked, place_of
from harness.shell.codex.errors import CodexInstallError, from_os_error

#: Told in a line of text what is being done, when it takes more than a moment.
Told = Callable[[str], None]


def bundles_folder() -> Path:
    """Return the folder in which generated bundles are kept, one folder a version."""
    return cache_folder() / "bundles"


def cached(version: str) -> Path | None:
    """Return the folder of the generated bundle of `version`, or None if it has not been generated yet."""
    place = bundles_folder() / check_version(version)
    return place if (place / schema_files.PRIMARY).is_file() else None


def bundle_of(named: str, told: Told = lambda text: None) -> Bundle:
    """Return the bundle that `named` is: a Codex version, or the path of a bundle file or folder of the user's own.

    A version's bundle is the vendored one, else the cached one, else generated now (which installs the binary if need
    be, and removes it again). Raises `BundleError`, a sentence, if there is none to be had.
    """
    if named in schema_files.versions():
        return load(named)
    if os.path.exists(named):
        return load_file(named)
    if os.sep in named or named.endswith(".json"):
        raise BundleError(f"There is no bundle file {named}: check the path, or name a Codex version such as 0.92.0.")
    try:
        return load_file(cached(named) or generate(named, told), named)
    except CodexInstallError as error:
        raise BundleError(str(error)) from None


def generate(version: str, told: Told = lambda text: None) -> Path:
    """Generate the bundle of `version` with its binary, keep it, and return its folder.

    A binary that was not installed before is installed for it and removed afterwards, whatever happens in between.
    Raises `BundleError` or `CodexInstallError`, each a sentence.
    """
    # The installer and the generator are only needed here, and not when every bundle is at hand.
    from harness.shell.codex.install import ensure

    before = find_installed(version) is not None
    try:
        binary = ensure(version, lambda step: told(step.text))
        told(f"Codex {version} writes its schemas")
        return _generate(version, binary)
    except OSError as error:
        raise from_os_error(error, cache_folder()) from None
    finally:
        if not before:
            remove_binary(version)


def _generate(version: str, binary: Path) -> Path:
    from harness.shell import schema_gen
    from harness.shell.files import replacing

    place = bundles_folder() / version
    try:
        with replacing(place) as draft:
            schema_gen.generate([str(binary), "app-server"], draft)
    except schema_gen.GenerateError as error:
        raise BundleError(str(error)) from None
    return place


def remove_binary(version: str) -> None:
    """Remove the installed binary of `version`, if there is one, and what an install that was killed left of it."""
    place = place_of(version)
    if not place.parent.is_dir():
        return
    with locked(place, lambda: None):
        for each in (place, *place.parent.glob(f".tmp-{place.name}-*")):
            shutil.rmtree(each, ignore_errors=True)
