"""Find a schema bundle: the bundle of a Codex version, which is generated at the first use, or the bundle in a user's file.

A schema bundle is small (a few megabytes), but the binary that generates it is large (60 to 250 megabytes). Therefore only
the bundle is kept, under ``<cache>/bundles/<version>/``. A binary that was installed only to generate a bundle is removed
after it has written the bundle. The disk therefore never contains more than one binary that was installed only for a
bundle. A bundle is generated in another folder, which is then renamed, so that the folder of a bundle is complete or does
not exist. Some versions also have an experimental bundle (`codex_replay.protocol.drift.experimental`), which is kept in the
same way under ``<cache>/bundles-experimental/<version>/``. The experimental bundle is written while the binary is installed
for the plain bundle.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from codex_replay.protocol import data_tables, versions
from codex_replay.protocol.drift.experimental import declares
from codex_replay.protocol.schema.bundle import Bundle, BundleError, load
from codex_replay.shell.codex.cache import cache_folder, check_version, locked, place_of
from codex_replay.shell.codex.errors import CodexInstallError, from_os_error
from codex_replay.shell.files import version_data
from codex_replay.shell.files.archive import is_file
from codex_replay.shell.files.bundle_files import load_file
from codex_replay.shell.files.folder import Folder

#: Told in a line of text what is being done, when it takes more than a moment.
Told = Callable[[str], None]


#: The source of your own bundle, for messages about a wrong path.
MADE = (
    f"A bundle is the output of `codex app-server generate-json-schema --out DIR`: name DIR, or {data_tables.PRIMARY} in it. "
    f"A version such as {versions.DEFAULT} works too."
)


def bundles_folder(experimental: bool = False) -> Path:
    """Return the folder of the generated bundles, which has one folder per version."""
    return cache_folder() / ("bundles-experimental" if experimental else "bundles")


def cached(version: str, experimental: bool = False) -> Path | None:
    """Return the folder with the generated bundle of `version`, in the cache or in the user's data folder.

    Return None if there is no folder with the bundle.
    """
    places = (bundles_folder(experimental) / check_version(version), Path(version_data.schema_folder(version, experimental)))
    return next((place for place in places if is_file(str(place / data_tables.PRIMARY))), None)


def bundle_of(named: str, told: Told = lambda text: None) -> Bundle:
    """Return the bundle that `named` names: a Codex version, or the path of a user's bundle file or folder.

    The bundle of a version is the packaged bundle, or else the bundle in the cache. If there is neither, the binary of the
    version generates the bundle now. A binary that is installed only to generate the bundle is removed afterwards. Raises
    `BundleError` if the bundle is not available.
    """
    if named in data_tables.versions():
        return load(named)
    if os.path.exists(named):
        return load_own(named)
    if os.sep in named or os.path.splitext(named)[1][1:].isalpha():
        raise BundleError(f"There is no bundle file {named}: check the path, or name a Codex version such as {versions.DEFAULT}.")
    try:
        return load_file(cached(named) or generate(named, told), named)
    except CodexInstallError as error:
        raise BundleError(str(error)) from None


def experimental_of(named: str, plain: Bundle, told: Told = lambda text: None) -> tuple[Bundle | None, str]:
    """Return the experimental bundle that belongs to the `plain` bundle of the Codex version `named`, from the cache or newly
    generated.

    Return None for a version without an experimental bundle, and for a user's own bundle. If the experimental bundle should
    exist but is not available, return None and a sentence with the reason.
    """
    if (os.path.exists(named) and named not in data_tables.versions()) or not declares(plain):
        return None, ""
    try:
        return load_file(cached(named, True) or generate(named, told, experimental=True), named), ""
    except (CodexInstallError, BundleError) as error:
        return None, str(error)


def load_own(path: str) -> Bundle:
    """Return the bundle in a user's file or folder, after a check of every schema.

    A user's file is checked, because it may have been edited, or may not be a schema bundle; a generated bundle is trusted.
    Raises `BundleError` if the file or folder is not a schema bundle.
    """
    if stat.S_ISCHR(os.stat(path).st_mode):  # reading /dev/zero would never end
        raise BundleError(f"{path} is a device: name a file or a folder. {MADE}")
    # Loaded for such files alone: it takes longer than comparing two bundles.
    import jsonschema_rs

    try:
        bundle = load_file(path)
        for name, data in bundle.files.items():
            if name.endswith(".json"):
                for document in _documents(json.loads(data)):
                    jsonschema_rs.meta.validate({"$schema": _DRAFT, **document})
    except jsonschema_rs.ValidationError as error:
        where = "".join(f"/{step}" for step in error.instance_path)
        raise BundleError(f"{path} is not a schema bundle: at {where or '/'}, {error.message[:200]}.") from None
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, BundleError):
            raise BundleError(f"{_unlike(path) or error} {MADE}") from None
        raise BundleError(f"{path} is not a schema bundle: it cannot be read as JSON schemas ({error}).") from None
    except OSError as error:
        raise BundleError(f"The bundle {path} cannot be read: {error.strerror or error}.") from None
    if not bundle.methods("client-request"):
        raise BundleError(f"{path} is not a bundle of the app-server protocol: ClientRequest names no method.")
    return _whole(bundle)


def _unlike(path: str) -> str | None:
    """Return a sentence with the reason if a file or folder does not look like a schema bundle, otherwise None."""
    if os.path.isdir(path):
        primary = os.path.join(path, data_tables.PRIMARY)
        return None if os.path.exists(primary) else f"{path} is not a schema bundle: it has no {data_tables.PRIMARY}."
    try:
        with open(path, "rb") as file:
            json.load(file)
    except ValueError:
        return f"{path} is not a schema bundle: it is not JSON."
    except (OSError, RecursionError):
        pass  # the reader has raised the error
    return None


def _whole(bundle: Bundle) -> Bundle:
    """Return the complete bundle of a version if `bundle` is only its primary file; otherwise return `bundle`.

    The complete bundle is needed for Codex 0.93 to 0.110, because their primary file omits a type if two types have the
    same name.
    """
    if len(bundle.files) > 1:
        return bundle
    own = bundle.files[data_tables.PRIMARY]
    folders = [version_data.schema_folder(version) for version in data_tables.versions()]
    for kept in (bundles_folder(), bundles_folder(experimental=True)):
        if kept.is_dir():
            folders += [str(each) for each in sorted(kept.iterdir()) if not each.name.startswith(".")]
    for folder in folders:
        files = Folder(folder)
        if files.size(data_tables.PRIMARY) == len(own) and files[data_tables.PRIMARY] == own:
            return Bundle(bundle.version, files)
    return bundle


_DRAFT = "http://json-schema.org/draft-07/schema#"


def _documents(value: Any) -> list[dict[str, Any]]:
    """Return all values in a bundle file that must be schemas: the file itself, and the definitions of v2, which are nested one
    level deeper.
    """
    if not isinstance(value, dict):
        raise TypeError("the file is not a JSON object")
    nested = value.get("definitions", {}).get("v2") if isinstance(value.get("definitions"), dict) else None
    return [value, {"definitions": nested}] if nested is not None else [value]


def generate(version: str, told: Told = lambda text: None, *, experimental: bool = False) -> Path:
    """Generate the plain or the `experimental` bundle of `version` with the version's binary.

    Store the generated bundle and return its folder. If the binary is not installed, install it now and remove it
    afterwards, even after an error. Raises `CodexInstallError` if the install fails, and `BundleError` if the binary writes no
    bundle.
    """
    # The installer and the generator are only needed here, and not when every bundle is at hand.
    from codex_replay.shell.codex.install import Step, ensure

    fresh: list[str] = []

    def step(it: Step) -> None:
        if it.stage == "unpack":
            fresh[:] = [version]
        told(it.text)

    try:
        binary = ensure(version, step)
        told(f"Codex {version} writes its schemas")
        place = _generate(version, binary, experimental)
        if not experimental and declares(load_file(place, version)):
            # The binary may be gone afterwards, and to fetch it again for the other bundle takes minutes. Who needs that one
            # receives the reason if it is not available.
            with contextlib.suppress(BundleError):
                _generate(version, binary, True)
        return place
    except OSError as error:
        raise from_os_error(error, cache_folder()) from None
    finally:
        if fresh:
            remove_binary(version)


def _generate(version: str, binary: Path, experimental: bool) -> Path:
    from codex_replay.shell.codex import schema_gen
    from codex_replay.shell.files.atomic import replacing

    place = bundles_folder(experimental) / version
    try:
        with replacing(place) as draft:
            schema_gen.generate([str(binary), "app-server"], draft, experimental=experimental)
    except schema_gen.GenerateError as error:
        raise BundleError(str(error)) from None
    return place


def remove_binary(version: str) -> None:
    """Remove the binary of `version` if it is installed, and remove the files of an install that was killed."""
    place = place_of(version)
    if not place.parent.is_dir():
        return
    with locked(place, lambda: None):
        for each in (place, *place.parent.glob(f".tmp-{place.name}-*")):
            shutil.rmtree(each, ignore_errors=True)
