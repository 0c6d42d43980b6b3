"""The methods fs/* of versions after 0.92: read and write the files that a client names, as the real server does."""

from __future__ import annotations

import os
import shutil
from base64 import b64decode, b64encode
from errno import EBUSY, ELOOP, ENAMETOOLONG
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG

from codex_fakes.scripted.state.form import base64_error
from codex_fakes.scripted.state.refused import Refused
from codex_fakes.scripted.state.settings import absolute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from codex_fakes.scripted.methods.protocols import Method, Session

_INTERNAL = -32603
#: The errors that the C library of the real binary (musl) describes in other words than that of Python.
_OTHER_WORDS = {ELOOP: "Symbolic link loop", ENAMETOOLONG: "Filename too long", EBUSY: "Resource busy"}


def _on_files(does: Callable[[dict[str, Any]], dict[str, Any] | None]) -> Method:
    """Return the function of a method fs/*. `does` gets the params with normalised paths, and returns the result."""

    def handle(session: Session, request: Any, params: dict[str, Any]) -> None:
        try:
            given = {name: absolute(value, "/") if name.lower().endswith("path") else value for name, value in params.items()}
            session.answer(request, does(given) or {})
        except OSError as error:
            words = _OTHER_WORDS.get(error.errno or 0) or os.strerror(error.errno or 0)
            raise Refused(f"{words} (os error {error.errno})", _INTERNAL) from None
        except ValueError:
            raise Refused("file name contained an unexpected NUL byte") from None

    return handle


def _read_file(params: dict[str, Any]) -> dict[str, Any]:
    path = params["path"]
    if not S_ISREG(os.stat(path).st_mode):
        raise Refused(f"path `{path}` is not a file")
    with open(path, "rb") as file:
        return {"dataBase64": b64encode(file.read()).decode()}


def _write_file(params: dict[str, Any]) -> None:
    if (wrong := base64_error(params["dataBase64"])) is not None:
        raise Refused(f"fs/writeFile requires valid base64 dataBase64: {wrong}")
    with open(params["path"], "wb") as file:
        file.write(b64decode(params["dataBase64"]))


def _create_directory(params: dict[str, Any]) -> None:
    if params.get("recursive") is False:
        os.mkdir(params["path"])
    else:
        os.makedirs(params["path"], exist_ok=True)


def _metadata(params: dict[str, Any]) -> dict[str, Any]:
    path = params["path"]
    found = os.stat(path)
    kinds = {"isDirectory": S_ISDIR(found.st_mode), "isFile": S_ISREG(found.st_mode), "isSymlink": os.path.islink(path)}
    return {**kinds, "createdAtMs": 0, "modifiedAtMs": found.st_mtime_ns // 1_000_000}


def _read_directory(params: dict[str, Any]) -> dict[str, Any]:
    """Return the entries of a directory, without links that lead nowhere."""
    entries = []
    for name in os.listdir(params["path"]):
        path = f"{params['path']}/{name}"
        if os.path.exists(path):
            entries.append({"fileName": name, "isDirectory": os.path.isdir(path), "isFile": os.path.isfile(path)})
    return {"entries": entries}


def _remove(params: dict[str, Any]) -> None:
    path = params["path"]
    try:
        is_folder = S_ISDIR(os.lstat(path).st_mode)
    except FileNotFoundError:
        if params.get("force") is False:
            raise
        return
    if not is_folder:
        os.unlink(path)
    elif params.get("recursive") is False:
        os.rmdir(path)
    else:
        shutil.rmtree(path)


def _copy(params: dict[str, Any]) -> None:
    source, target = params["sourcePath"], params["destinationPath"]
    if S_ISDIR(os.lstat(source).st_mode):
        if not params.get("recursive"):
            raise Refused("fs/copy requires recursive: true when sourcePath is a directory")
        if f"{os.path.realpath(target)}/".startswith(f"{os.path.realpath(source)}/"):
            raise Refused("fs/copy cannot copy a directory to itself or one of its descendants")
    _copy_one(source, target)


def _copy_one(source: str, target: str, inside: bool = False) -> None:
    """Copy a file with its mode, a symbolic link as a link, or a directory with its entries into the directory `target`."""
    mode = os.lstat(source).st_mode
    if S_ISDIR(mode):
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(source):
            _copy_one(f"{source}/{name}", f"{target}/{name}", inside=True)
    elif S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
    elif S_ISREG(mode):
        with open(source, "rb") as old, open(target, "wb") as new:
            shutil.copyfileobj(old, new)
            os.fchmod(new.fileno(), S_IMODE(mode))
    elif not inside:
        raise Refused("fs/copy only supports regular files, directories, and symlinks")


METHODS: dict[str, Method] = {
    "fs/readFile": _on_files(_read_file),
    "fs/writeFile": _on_files(_write_file),
    "fs/createDirectory": _on_files(_create_directory),
    "fs/getMetadata": _on_files(_metadata),
    "fs/readDirectory": _on_files(_read_directory),
    "fs/remove": _on_files(_remove),
    "fs/copy": _on_files(_copy),
}
