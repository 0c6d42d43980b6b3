"""Snapshots of conversations in your own repository, with syrupy:

`pytest --snapshot-update` writes the snapshot to `__snapshots__/<test file>/<test>.conversation.txt`. docs/snapshots.md explains
snapshots. The fixture `codex_snapshot` is syrupy's `snapshot` with the extension `ConversationSnapshot`. Secrets are redacted
before a snapshot is written or printed.

Example:

    def test_my_client(fake_codex, codex_snapshot):
        fake_codex.script(["Hello."])
        MyClient(fake_codex.command).ask("Hi")
        assert fake_codex.conversation == codex_snapshot
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest

from codex_replay.core.cassette.frames import Frame
from codex_replay.protocol.recordings.conversation import Conversation, text
from codex_replay.shell.cassettes.api import open_cassette
from codex_replay.shell.cassettes.file import CassetteError, CassetteReader

try:
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
except ImportError as error:
    raise ImportError(
        f"codex_replay.snapshot needs syrupy ({error}): run `pip install 'codex-replay[snapshot]'`.", name="syrupy"
    ) from None

__all__ = ["ConversationSnapshot"]


class ConversationSnapshot(SingleFileSnapshotExtension):
    """The syrupy extension that compares conversations: redacted, normalised, and written as text.

    The compared value is `fake_codex.conversation`, `codex_backend.conversation`, the path of a cassette, an open cassette,
    or a list of frames. A value of another kind raises `TypeError`. To redact your own secrets and folders, set `literals`
    and `paths` in a subclass. `literals` and `paths` have the form of the arguments of `Redactor`.
    """

    file_extension = "conversation.txt"
    _write_mode = WriteMode.TEXT

    literals: ClassVar[Mapping[str, str]] = {}
    paths: ClassVar[Mapping[str, str]] = {}

    def serialize(self, data: Any, **_: Any) -> str:
        """Return the text of a conversation, in the form for files and comparisons."""
        cut = ""
        if isinstance(data, str | os.PathLike):
            try:
                with open_cassette(data) as reader:
                    data = Conversation(reader, reader.header.codex)
                    cut = "(the recording was cut short)\n" if reader.truncated else ""
            except CassetteError as error:  # no traceback of syrupy's: the sentence names the file
                pytest.fail(str(error), pytrace=False)
        elif isinstance(data, CassetteReader):
            data = Conversation(data, data.header.codex)
        if isinstance(data, Iterable) and not isinstance(data, Conversation):
            data = Conversation(data)
        if not isinstance(data, Conversation) or not all(isinstance(frame, Frame) for frame in data):
            raise TypeError(
                f"A {type(data).__name__} is not a conversation; compare fake_codex.conversation, codex_backend.conversation, "
                "the path of a cassette, or a list of frames."
            )
        return text(data, literals=self.literals, paths=self.paths) + cut
