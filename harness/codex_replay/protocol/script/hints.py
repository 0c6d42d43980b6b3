"""Make the hint in a message about a mistake in a script: the word that the author probably meant, or the correct form of a
value.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable
    from typing import Any

#: Words of the Responses API, and of other scripts, that people write -> ours.
_OURS = {
    "message": "text",
    "output_text": "text",
    "content": "text",
    "tool_call": "function_call",
    "parameters": "arguments",
    "input": "arguments",
    "comment": "about",
    "responses": "turns",
    "replies": "turns",
}


def ours(word: str, words: Container[str]) -> str:
    """Return a question that suggests the script key for a key of the API; return "" if `words` has no such key."""
    return f' (did you mean "{_OURS[word]}"?)' if word in _OURS and _OURS[word] in words else ""


def near(word: str, words: Iterable[str], cutoff: float = 0.6) -> str:
    """Return a question that suggests the most similar known word.

    Return "" if no word has at least the similarity `cutoff` (1 means equal).
    """
    import difflib  # only for a mistake: it would cost every start

    # "itmes" is as near to "times" as to "items": people rarely mistype the first letter.
    found = sorted(difflib.get_close_matches(word, list(words), cutoff=cutoff), key=lambda each: each[:1] != word[:1])
    return f' (did you mean "{found[0]}"?)' if found else ""


def listed(words: Any) -> str:
    """Return words with commas."""
    return ", ".join(words)


def named(value: object) -> str:
    """Return the kind of a value, such as "a list", or the value itself if it is short."""
    if value is None:
        return "null"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    shown = str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, str) else str(value)
    from codex_replay.core.text.truncate import truncate

    return truncate(shown, 60)


def rewritten(value: object, test: Callable[[Any], bool]) -> str:
    """If `test` refuses a value, return a sentence with the form that `test` would accept; return "" if no such form is found."""
    if isinstance(value, str):
        return " Remove the quotes." if any(test(each) for each in _unquoted(value)) else ""
    if isinstance(value, dict | list):
        if test([value]):
            return " Put it into a list."
        return " Write the JSON value as a string." if test("x") else ""
    return " Write it in quotes." if value is not None and test(named(value)) else ""


def _unquoted(text: str) -> list[Any]:
    """Return the values other than strings that the author of the string `text` may have meant."""
    if text in ("true", "false"):
        return [text == "true"]
    try:
        return [int(text)]
    except ValueError:
        try:
            return [float(text)]
        except ValueError:
            return []


def lone_surrogate(value: Any, where: str = "") -> str | None:
    """Return the place of the first text or key that UTF-8 cannot encode, such as `turns[0].items[1]`; None if all can be."""
    if isinstance(value, str):
        return None if all(not "\ud800" <= char <= "\udfff" for char in value) else where or "the script"
    if isinstance(value, list):
        inner = ((f"{where}[{i}]", one) for i, one in enumerate(value))
    elif isinstance(value, dict):
        if any(lone_surrogate(key) for key in value):
            return f"a key of {where or 'the script'}"
        inner = ((f"{where}.{key}" if where else key, one) for key, one in value.items())
    else:
        return None
    return next((found for place, one in inner if (found := lone_surrogate(one, place))), None)
