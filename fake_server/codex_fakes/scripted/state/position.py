"""The position in a script, which is stored in the state folder: the used turns and answers, and the number of requests."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from codex_fakes.scripted.state.store import Store

    class Scripted(Protocol):
        """The interface of the model that a position uses."""

        def position(self) -> dict[str, Any]:
            """Return the current position in the script."""

        def go_on(self, position: dict[str, Any]) -> None:
            """Continue from a position."""


class Position:
    """The position in the script, which several processes may share.

    `with position:` reads the position from the state folder, and stores its changes at the end.
    """

    def __init__(self, model: Scripted, store: Store, text: bytes | None) -> None:
        self._model, self._store = model, store
        self._name = store.script_name(text)
        self._before: Any = None

    def __enter__(self) -> None:
        """Lock the folder, and continue where the last process stopped."""
        self._store.__enter__()
        kept = self._store.read(self._name)
        try:
            self._model.go_on(kept)
        except (AttributeError, TypeError, ValueError):
            error = self._store.broken(self._name, "no position in a script")
            self._store.__exit__(None, None, None)
            raise error from None
        self._before = self._model.position()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Store the position, and unlock the folder."""
        now = self._model.position()
        if error is None and now != self._before:
            self._store.write(self._name, now)
        self._store.__exit__(kind, error, trace)
