"""How far a script is used, kept in the state folder: the turns and the answers, and how many requests there were."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from codex_fakes.scripted.state.store import Store

    class Scripted(Protocol):
        """The model, as far as its position goes."""

        def position(self) -> dict[str, Any]:
            """Return how far the script is used."""

        def go_on(self, position: dict[str, Any]) -> None:
            """Go on from a position."""


class Position:
    """The position of a model in its script: `with position:` takes it over from other processes, and keeps what changes."""

    def __init__(self, model: Scripted, store: Store, text: bytes | None) -> None:
        self._model, self._store = model, store
        self._name = store.script_name(text)
        self._before: Any = None

    def __enter__(self) -> None:
        """Lock the folder, and go on where the last process stopped."""
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
        """Keep the position, and unlock the folder."""
        now = self._model.position()
        if error is None and now != self._before:
            self._store.write(self._name, now)
        self._store.__exit__(kind, error, trace)
