"""`fake-codex exec review`: its options, and the review that they request, as in `codex exec review` 0.92.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from codex_fakes.scripted.methods.review import texts
from codex_fakes.scripted.turns.review import Review

if TYPE_CHECKING:
    from codex_fakes.scripted.session import Session
    from codex_fakes.scripted.state.thread import Thread

#: The options of `exec` that its command `review` has, too.
SHARED = ("config", "feature", "model", "json", "anywhere", "full-auto", "yolo")
VALUES = {"--base": "base", "--commit": "commit", "--title": "title"}
FLAGS = {"--uncommitted": "uncommitted"}
NOTHING = "Specify --uncommitted, --base, --commit, or provide custom review instructions"
PROMPT = "[PROMPT]"
#: The arguments of which only one may be given, as a usage shows them.
TARGETS = ("--uncommitted", "--base <BRANCH>", "--commit <SHA>", PROMPT)
NO_COMMIT = (
    "error: the following required arguments were not provided:\n  --commit <SHA>\n\n"
    "Usage: codex exec review --commit <SHA> --title <TITLE> [PROMPT]"
)


def target(options: Mapping[str, Any], prompt: str | None) -> dict[str, Any]:
    """Return the target of the review in the form of `review/start`. Raises ValueError if the options name no target."""
    if "uncommitted" in options:
        return {"type": "uncommittedChanges"}
    if "base" in options:
        return {"type": "baseBranch", "branch": options["base"]}
    if "commit" in options:
        return {"type": "commit", "sha": options["commit"], "title": options.get("title")}
    if prompt is None:
        raise ValueError(NOTHING)
    if not prompt.strip():
        raise ValueError("Review prompt cannot be empty")
    return {"type": "custom", "instructions": prompt.strip()}


def review(session: Session, thread: Thread, wanted: dict[str, Any]) -> tuple[str, Review | None]:
    """Return a pair: the text that takes the place of the prompt, and the `Review`.

    The `Review` is None for a review against a branch if there is no repository, because such a review cannot begin.
    """
    hint, prompt = texts(session, wanted)
    if prompt is None:
        return hint, None
    return hint, Review(thread, session.model, session.table, wanted, prompt, hint)
