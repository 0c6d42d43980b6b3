"""The folder of `FAKE_CODEX_STATE`: the data that the scripted fake keeps between processes.

The file `threads/ID.ndjson` has a line for each change of one thread. A line is appended in one write, and no line is ever
rewritten. The file `script-CRC.json` has the position in the script with the checksum CRC; it is replaced atomically. The
file `rules.json` has the command prefixes that amendments allow; it is replaced atomically. The file `lock` is locked while
a process reads or writes one of the other files.

If a process is killed while it writes, the last line of a file may be incomplete: readers ignore the line, and the next
writer removes it. Processes that use the same thread at the same time append to the same file, as with the real server.
Each process shows the turns of all processes, but its model gets only the turns that existed when the process loaded the
thread.

If a file is damaged, the process ends with status 2 and a sentence on stderr.
"""

from __future__ import annotations

import os
from fcntl import LOCK_EX, LOCK_UN, flock
from zlib import crc32

from codex_fakes.scripted.state.ids import uuid4, uuid_error
from codex_fakes.scripted.state.kept import Broken, Kept
from codex_fakes.stdio.loop import Ended, write_out
from codex_replay.core.wire.json_text import NotJson, dumps, loads
from codex_replay.protocol.versions import DEFAULT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from codex_fakes.scripted.state.thread import Thread

_ADVICE = "delete it, or choose another folder for FAKE_CODEX_STATE"


class Store:
    """The state folder (FAKE_CODEX_STATE), and the lock on it (`with store:`).

    Raises `ValueError` with a sentence if the state folder cannot be used.

    All methods raise `Ended` for a damaged file, or if the state folder can no longer be read or written.
    """

    def __init__(self, folder: str, version: str = DEFAULT) -> None:
        self.folder = os.path.abspath(folder)
        self._kept: dict[str, Kept] = {}
        self._depth = 0
        try:
            os.makedirs(self._path("threads"), exist_ok=True)
            self._lock = os.open(self._path("lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise ValueError(
                f"the state folder {folder} cannot be used ({error.strerror}); choose another folder for FAKE_CODEX_STATE."
            ) from None
        self._claim(version)

    def _claim(self, version: str) -> None:
        """Write the Codex version of the threads into a new folder. Raises `ValueError` if the folder has another version."""
        with self:
            known = DEFAULT if os.listdir(self._path("threads")) else version
            kept = self.read("codex").get("version", known)
            if kept != version:
                raise ValueError(
                    f"the state folder {self.folder} has threads of Codex {kept}, not {version}; "
                    "choose another folder for FAKE_CODEX_STATE."
                )
            if version != DEFAULT:
                self.write("codex", {"version": version})

    def _path(self, *names: str) -> str:
        return os.path.join(self.folder, *names)

    def __enter__(self) -> Store:
        """Lock the folder against all other processes."""
        if self._depth == 0:
            flock(self._lock, LOCK_EX)
        self._depth += 1
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Unlock the folder."""
        self._depth -= 1
        if self._depth == 0:
            flock(self._lock, LOCK_UN)
        if isinstance(error, OSError):
            raise _end(f"the state folder {self.folder} cannot be read or written ({error.strerror}).") from None

    # -- the script and the rules ---------------------------------------------------------------------------------------

    @staticmethod
    def script_name(text: bytes | None) -> str:
        """Return the name of the file with the position in a script.

        Another script has another file, and therefore begins with its first turn.
        """
        return "default" if text is None else f"script-{crc32(text):08x}"

    def read(self, name: str) -> dict[str, Any]:
        """Return the content of a small JSON file in the state folder. If the file does not exist, the content is empty."""
        path = self._path(f"{name}.json")
        try:
            with open(path, "rb") as file:
                value = loads(file.read())
        except FileNotFoundError:
            return {}
        except NotJson as error:
            raise _end(f"the state file {path} is broken ({error}); {_ADVICE}.") from None
        if type(value) is not dict:
            raise self.broken(name, "no JSON object")
        return value

    def broken(self, name: str, why: str) -> Ended:
        """Report on stderr that a small JSON file in the state folder is invalid. Return the exception that ends the process."""
        return _end(f"the state file {self._path(f'{name}.json')} is broken ({why}); {_ADVICE}.")

    def rules(self) -> list[list[str]]:
        """Return the command prefixes that amendments allow."""
        rules = self.read("rules").get("prefixes", [])
        if type(rules) is not list or any(type(rule) is not list for rule in rules):
            raise self.broken("rules", "`prefixes` is not a list of lists")
        return rules

    def allow(self, prefix: list[str]) -> None:
        """Add a command prefix."""
        with self:
            self.write("rules", {"prefixes": [*self.rules(), prefix]})

    def write(self, name: str, value: dict[str, Any]) -> None:
        """Replace one of the small JSON files, while the folder is locked."""
        path = self._path(f"{name}.json")
        draft = f"{path}.{os.getpid()}"
        with open(draft, "wb") as file:
            file.write(dumps(value) + b"\n")
        os.replace(draft, path)

    # -- threads ----------------------------------------------------------------------------------------------------------

    def refresh(self, threads: dict[str, Thread], make: Callable[[dict[str, Any]], Thread]) -> None:
        """Update the threads from the files in the state folder.

        The function `make` creates a thread from the members in the first line of its file.
        """
        with self:
            found = False
            for name in sorted(os.listdir(self._path("threads"))):
                thread_id, _, kind = name.rpartition(".")
                if kind == "ndjson" and uuid_error(thread_id) is None:
                    found = self._catch_up(thread_id, threads, make) or found
        if found:
            ordered = sorted(threads.items())  # ids sort by the time of creation
            threads.clear()
            threads.update(ordered)

    def _catch_up(self, thread_id: str, threads: dict[str, Thread], make: Callable[[dict[str, Any]], Thread]) -> bool:
        """Read the lines that other processes have appended to the file of a thread.

        Return True if the thread is new in this process.
        """
        kept = self._kept.setdefault(thread_id, Kept())
        new = False
        for entry in self._entries(thread_id, kept):
            try:
                if thread_id not in threads:
                    threads[thread_id] = make({**entry["meta"], "id": thread_id})
                    new = True
                kept.apply(threads[thread_id], entry)
            except (Broken, KeyError, TypeError, AttributeError, IndexError, ValueError):
                raise self._broken(thread_id, kept, "a member is missing or has a wrong type") from None
        return new

    def _entries(self, thread_id: str, kept: Kept) -> Iterator[dict[str, Any]]:
        """Yield the lines that were appended to a thread's file since the last reading."""
        path = self._path("threads", f"{thread_id}.ndjson")
        try:
            if os.stat(path).st_size <= kept.offset:
                return
            with open(path, "rb") as file:
                file.seek(kept.offset)
                data = file.read()
        except FileNotFoundError:
            return
        for line in data.splitlines(keepends=True):
            if not line.endswith(b"\n"):
                return  # of a process that was killed in its write
            kept.offset += len(line)
            kept.lines += 1
            try:
                entry = loads(line)
            except NotJson as error:
                raise self._broken(thread_id, kept, str(error)) from None
            if type(entry) is not dict or type(entry.get("meta")) is not dict:
                raise self._broken(thread_id, kept, "no object with `meta`")
            yield entry

    def _broken(self, thread_id: str, kept: Kept, why: str) -> Ended:
        path = self._path("threads", f"{thread_id}.ndjson")
        return _end(f"the state file {path} is broken at line {kept.lines} ({why}); {_ADVICE}.")

    def save(self, threads: dict[str, Thread]) -> None:
        """Append the changes of the threads since the last call to their files."""
        for thread_id, thread in threads.items():
            if thread.ephemeral:
                continue
            kept = self._kept.setdefault(thread_id, Kept())
            if kept.changed(thread):
                with self:
                    self._catch_up(thread_id, threads, lambda meta: thread)  # noqa: B023 - called at once
                    self._append(thread_id, kept, dumps(kept.entry(thread, uuid4)) + b"\n")

    def _append(self, thread_id: str, kept: Kept, line: bytes) -> None:
        descriptor = os.open(
            self._path("threads", f"{thread_id}.ndjson"), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644
        )
        try:
            if os.fstat(descriptor).st_size > kept.offset:
                os.ftruncate(descriptor, kept.offset)  # the line that a killed process did not finish
            done = os.write(descriptor, line)
            while done < len(line):
                done += os.write(descriptor, line[done:])
        finally:
            os.close(descriptor)
        kept.offset += len(line)
        kept.lines += 1

    def reload(self, thread: Thread) -> None:
        """Read a thread's file completely, including the lines that other processes appended while the thread was loaded in this
        process.
        """
        old = self._kept.get(thread.id)
        if old is None or not old.foreign or thread.turn is not None:
            return
        with self:
            kept = self._kept[thread.id] = Kept()
            thread.history, thread.turns, thread.said, thread.loaded = [], [], [], False
            for entry in self._entries(thread.id, kept):
                kept.apply(thread, entry)


def _end(sentence: str) -> Ended:
    """Report an error in the state folder on stderr.

    Return the exception that the caller must raise: it ends the process with status 2.
    """
    write_out(f"fake-codex: {sentence}")
    return Ended(2)
