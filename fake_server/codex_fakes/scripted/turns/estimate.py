"""Estimate the tokens of a thread's context by the rule of the real server: four bytes of an item's JSON count as one token.

The estimate includes texts that the fake's requests lack: the base instructions of the model, the permissions and the
user's instructions. The size of the base instructions is in turn.json. `unsent` items in the history stand for the
permissions and the user's instructions. In versions after 0.92, only the texts of messages count, and the size in turn.json
includes all texts that the fake's requests lack.
"""

from __future__ import annotations

from codex_replay.core.wire.json_text import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from codex_fakes.scripted.state.settings import Settings
    from codex_fakes.scripted.state.thread import Thread


def context_tokens(thread: Thread, settings: Settings) -> int:
    """Return the estimated tokens of the base instructions and of the whole history."""
    given = settings.base_instructions
    size = settings.abilities()["prompt"] if given is None else _size(given)
    return _tokens(size) + sum(_item_tokens(item, settings, thread) for item in thread.history)


def used_tokens(thread: Thread) -> int:
    """Return the number of tokens that decides whether the context is compacted: the tokens of the last reply and of the
    reasoning in earlier turns.
    """
    users = [i for i, item in enumerate(thread.history) if item.get("role") == "user"]
    earlier = thread.history[: users[-1] if users else 0]
    thought = [item for item in earlier if item["type"] == "reasoning" and item.get("encrypted_content")]
    return (thread.last or {}).get("total_tokens", 0) + sum(map(_reasoning_tokens, thought))


def _item_tokens(item: dict[str, Any], settings: Settings, thread: Thread) -> int:
    if thread.clock:
        return sum(_tokens(_size(part.get("text", ""))) for part in item.get("content", ()))
    if item["type"] == "unsent":
        return sum(_tokens(_size(dumps(text).decode())) for text in _unsent_items(item, settings))
    if item["type"] == "reasoning" and item.get("encrypted_content"):
        return _reasoning_tokens(item)
    return _tokens(len(dumps(item)))


def _unsent_items(item: dict[str, Any], settings: Settings) -> list[dict[str, Any]]:
    """Return the items of the real server that an unsent item represents."""
    from codex_fakes.scripted.state.raw import opening

    then = settings.copy()
    then.cwd, then.policy, then.sandbox, then.developer_instructions = item["cwd"], item["policy"], item["sandbox"], None
    permissions, instructions, _ = opening(then)
    return [permissions, instructions] if item["opens"] else [permissions]


def _reasoning_tokens(item: dict[str, Any]) -> int:
    return _tokens(max(0, len(item["encrypted_content"]) * 3 // 4 - 650))


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _tokens(size: int) -> int:
    return (size + 3) // 4
