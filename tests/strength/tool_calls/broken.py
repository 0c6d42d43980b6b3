"""Parsers that are wrong in one way each: what many a program has for a parser. Each feature of the vectors finds one of them.

A parser takes the pieces of a stream and returns the calls, as (name, arguments string), and the text beside them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from codex_replay.reference.proxy.answering.tool_calls import CLOSE, OPEN, ToolCallParser

Parsed = tuple[list[tuple[str, str]], str]
Parser = Callable[[Sequence[str]], Parsed]
BLOCK = re.compile(r"<tool_call>(.*?)</tool_call>", re.S)


def reference(pieces: Sequence[str]) -> Parsed:
    """The parser of the reference proxy, which is right."""
    parser = ToolCallParser()
    found = [part for piece in pieces for part in parser.feed(piece)] + parser.close()
    calls = [(part.name, part.arguments) for part in found if not isinstance(part, str)]
    return calls, "".join(part for part in found if isinstance(part, str))


def at_the_end(change: Callable[[str], str]) -> Parser:
    """Change the whole text before the right parser reads it."""
    return lambda pieces: reference([change("".join(pieces))])


def afterwards(change: Callable[[list[tuple[str, str]], str], Parsed]) -> Parser:
    """Change what the right parser has found."""
    return lambda pieces: change(*reference(pieces))


def by_pattern(pieces: Sequence[str]) -> Parsed:
    """Take all between an opening tag and the first closing tag; what is no JSON there is dropped."""
    text = "".join(pieces)
    calls = []
    for inside in BLOCK.findall(text):
        try:
            value = json.loads(inside)
            calls.append((value["name"], value["arguments"]))
        except (ValueError, KeyError, TypeError):
            pass
    return calls, BLOCK.sub("", text)


def piece_by_piece(pieces: Sequence[str]) -> Parsed:
    """Read each piece as if it were all."""
    found = [reference([piece]) for piece in pieces]
    return [call for calls, _ in found for call in calls], "".join(text for _, text in found)


def unread(pieces: Sequence[str]) -> Parsed:
    """Find no calls."""
    return [], "".join(pieces)


def silent(pieces: Sequence[str]) -> Parsed:
    """Find the calls, and drop all text."""
    return reference(pieces)[0], ""


def inside(change: Callable[[str], str]) -> Parser:
    """Change what stands between the tags, before the right parser reads it."""
    return at_the_end(lambda text: BLOCK.sub(lambda match: OPEN + change(match[1]) + CLOSE, text))


def shown_if(wrong: Callable[[str], Any]) -> Parser:
    """Show the whole text as it is if this holds of it."""
    return lambda pieces: unread(pieces) if wrong("".join(pieces)) else reference(pieces)


def arguments(change: Callable[[str], str]) -> Parser:
    """Change the arguments of each call."""
    return afterwards(lambda calls, text: ([(name, change(said)) for name, said in calls], text))


def again(said: str) -> str:
    """Decode and encode arguments, without the values that are false."""
    value = json.loads(said)
    return json.dumps({key: each for key, each in value.items() if each})


def made_up(pieces: Sequence[str]) -> Parsed:
    """Make a call without a name of each block that is none."""
    calls, text = reference(pieces)
    return (calls or [("", "{}") for _ in BLOCK.findall("".join(pieces))]), BLOCK.sub("", text)


#: Feature -> the parsers that its vectors must find. All but the coarsest read the vectors `one` and `plain` rightly.
BROKEN: dict[str, dict[str, Parser]] = {
    "form": {"finds nothing": unread, "needs compact JSON": shown_if(lambda text: '" :' in text or '":\n' in text)},
    "text-around": {
        "drops the text": silent,
        "trims at the tags": at_the_end(lambda text: re.sub(r"(\S)<tool_call>", "<tool_call>", text)),
    },
    "several": {
        "takes the first call": afterwards(lambda calls, text: (calls[:1], text)),
        "merges equal calls": afterwards(lambda calls, text: (list(dict.fromkeys(calls)), text)),
        "turns the order": afterwards(lambda calls, text: (calls[::-1], text)),
    },
    "plain": {
        "removes tags that it does not know": at_the_end(lambda text: re.sub(r"<(?!/?tool_call>)/?\w+>", "", text)),
        "removes single brackets": afterwards(lambda calls, text: (calls, text.replace("<", ""))),
        "trims": afterwards(lambda calls, text: (calls, " ".join(text.split()))),
    },
    "arguments": {
        "drops what is false": arguments(again),
        "reads numbers as doubles": arguments(lambda said: json.dumps(json.loads(said, parse_int=float))),
        "shows objects": shown_if(lambda text: '"arguments":{' in text),
        "encodes twice": arguments(json.dumps),
    },
    "strings": {
        "ends at the first closing tag": by_pattern,
        "counts braces in strings": shown_if(lambda text: text.count("{") != text.count("}")),
        "unescapes twice": inside(lambda said: said.replace('\\\\\\"', '\\"')),
    },
    "unicode": {
        "drops separators": arguments(lambda said: re.sub("[\u2028\u2029\u0085]", "", said)),
        "drops astral characters": arguments(lambda said: re.sub("[\U00010000-\U0010ffff]", "?", said)),
        "does not read escapes of names": shown_if(lambda text: '"get\\u' in text),
    },
    "opening-tag": {
        "shows a doubled opening tag": shown_if(lambda text: OPEN + OPEN in text),
        "needs no opening tag": at_the_end(lambda text: OPEN + text if text.startswith("{") and CLOSE in text else text),
    },
    "closing-tag": {
        "shows a doubled closing tag": at_the_end(lambda text: text.replace(CLOSE + CLOSE, CLOSE + " " + CLOSE[:-1]))
    },
    "trailing": {"shows what trails": shown_if(lambda text: re.search(r'"\}[\s}\]>`]+</tool_call>', text))},
    "array": {"shows arrays": shown_if(lambda text: OPEN + "[" in text or OPEN + "\n[" in text)},
    "fence-inside": {"shows fences": shown_if(lambda text: re.search(r"<tool_call>\s*```", text))},
    "cut-off": {"shows what is cut off": shown_if(lambda text: text.rfind(OPEN) > text.rfind(CLOSE))},
    "no-call": {"calls what names no tool": made_up},
    "code": {
        "removes the tags in code": lambda pieces: reference(
            [re.sub(r"(```\w*\n|~~~\n|`)<tool_call>(.*?)</tool_call>", r"\1\2", "".join(pieces))]
        ),
        "ends no code block": lambda pieces: unread(pieces) if "".join(pieces).startswith("```") else reference(pieces),
    },
    "large": {"cuts at 64 kB": arguments(lambda said: said[:65536])},
    "split": {"reads each piece alone": piece_by_piece},
}
