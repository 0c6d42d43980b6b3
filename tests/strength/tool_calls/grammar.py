"""The texts of the vectors, by feature: what a model writes, and where the stream of it is cut.

Each row is (id, why, text). A row of `split` has the same text several times, cut at each point that a parser may get wrong.
The outcomes are the oracle's. Nothing of ours is imported.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

OPEN, CLOSE = "<tool_call>", "</tool_call>"
#: Text -> how often it is repeated, for the text that is too large for a file.
FILL = {"${1M}": ("0123456789abcdef", 65536)}


class Text(NamedTuple):
    """One text; `cuts` None lets who runs it cut where he likes."""

    feature: str
    id: str
    why: str
    text: str
    cuts: tuple[int, ...] | None = None


def body(name: str = "getFileTree", arguments: Any = '{"path":"a/b"}') -> str:
    """The JSON between the tags."""
    return json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False, separators=(",", ":"))


def call(name: str = "getFileTree", arguments: Any = '{"path":"a/b"}') -> str:
    """A call in the exact form of the instructions."""
    return OPEN + body(name, arguments) + CLOSE


def path(value: str) -> str:
    """A call whose one argument is this text."""
    return call(arguments=json.dumps({"path": value}, ensure_ascii=False, separators=(",", ":")))


def block(inside: str) -> str:
    """Anything between the tags."""
    return OPEN + inside + CLOSE


ONE, NOTE, BODY = call(), call("saveNote", '{"title":"x"}'), body()
SPACED = '  { "name" : "getFileTree" , "arguments" : "{ \\"path\\" : \\"a/b\\" }" }  '
OBJECT = '{"name":"getFileTree","arguments":{"path":"a/b"}}'
RENAMED = '{"tool":"getFileTree","parameters":{"path":"a/b"}}'
CODE = f"Use this form:\n```\n{ONE}\n```\nThat is all."

ROWS: dict[str, list[tuple[str, str, str]]] = {
    "form": [
        ("one", "One call and nothing else.", ONE),
        (
            "one-with-newlines",
            "Models put the tags on lines of their own.",
            block("\n" + BODY.replace(":", ": ", 1) + "\n") + "\n",
        ),
        ("one-with-carriage-returns", "Lines may end as on Windows.", block("\r\n" + BODY + "\r\n") + "\r\n"),
        ("one-with-tabs", "A tab is white space too.", f"\t{block(chr(9) + BODY + chr(9))}\t"),
        (
            "keys-in-other-order",
            "The order of keys means nothing.",
            block('{"arguments":"{\\"path\\":\\"a/b\\"}","name":"getFileTree"}'),
        ),
        ("spaces-inside", "JSON may have spaces.", block(SPACED)),
        (
            "on-many-lines",
            "JSON may have line ends between its tokens.",
            block('{\n  "name":\n  "getFileTree",\n  "arguments":\n  "{}"\n}'),
        ),
    ],
    "text-around": [
        ("text-before", "Text before a call is the user's.", f"Let me look. {ONE}"),
        ("text-after", "Text after a call is the user's.", f"{ONE} Done."),
        ("text-around", "Text on both sides; the call leaves no trace in it.", f"Before. {ONE} After."),
        ("text-adjacent", "No blank stands between the text and the tags.", f"Before.{ONE}After."),
        ("text-on-other-lines", "Text and call are paragraphs of their own.", f"Before.\n\n{ONE}\n\nAfter."),
        ("text-with-json", "JSON beside a call is text.", f'I use {{"name":"getFileTree"}} now: {ONE} [1] "done"'),
        ("text-with-less-than", "A '<' beside a call begins no tag.", f"if a < b: {ONE} and c <d> is text"),
        (
            "text-with-greater-than",
            "A '>' that is part of the text stays, save directly behind a closing tag.",
            f"a > b {ONE} c > d",
        ),
        ("text-of-symbols", "Text directly at the tags, beyond the basic plane.", f"\U0001f50d{ONE}\u2705"),
    ],
    "several": [
        ("two", "Two calls, in order.", f"{ONE}\n{NOTE}"),
        ("two-without-space", "Nothing stands between them.", ONE + NOTE),
        ("two-the-same", "The same call twice is two calls.", ONE + ONE),
        ("two-of-one-tool", "Two calls of one tool keep their own arguments.", path("first") + path("second")),
        ("two-with-text-between", "Text between two calls stays.", f"{ONE} and {NOTE}"),
        ("three-and-text", "Calls and text take turns.", f"One {ONE} two {NOTE} three {ONE} four"),
        ("five", "Many calls keep their order.", "".join(path(each) for each in "edcba")),
    ],
    "plain": [
        ("plain", "No call at all.", "Just text."),
        (
            "plain-less-than",
            "A '<' that begins no tag is text at once and is not lost.",
            "if a < b and b <c then <tool> or <tool_calls> is fine <",
        ),
        (
            "plain-odd",
            "No character of plain text is changed.",
            '\u00ab\u00fc\u00bb \U0001f600 \u2028 \\ " {"name":"getFileTree"}',
        ),
        ("plain-tag-name", "The name of the tag is no tag.", "Write tool_call or /tool_call> here."),
        ("plain-json", "A call without its tags is text.", f"It would be {BODY}."),
        ("plain-white-space", "Blanks and line ends of plain text stay as they are.", "  a\n\n\tb  \r\n c  "),
        ("plain-html", "Other tags are text.", "<p>One <b>bold</b> word</p>"),
        ("plain-tag-not-ended", "A tag without its '>' is text.", "<tool_call is not ended, and </tool_call neither."),
        ("plain-blank-in-the-tag", "A blank in the tag makes it text.", "Not < tool_call> and not <tool_call >."),
        ("plain-quotes", "Quotes and braces of plain text open nothing.", 'He said "{" and then }} or ]["'),
    ],
    "arguments": [
        ("arguments-object", "Arguments as an object, against the rules but clear.", block(OBJECT)),
        ("arguments-empty-object", "No parameters, as the instructions ask for.", call(arguments="{}")),
        ("arguments-empty-string", "An empty string stands for no arguments.", call(arguments="")),
        ("arguments-missing", "No arguments at all stand for none.", block('{"name":"getFileTree"}')),
        ("arguments-null", "Null arguments stand for none.", block('{"name":"getFileTree","arguments":null}')),
        (
            "arguments-nested",
            "Objects, arrays and numbers keep their types.",
            call(arguments='{"a":{"b":[1,2.5,null,true]},"c":""}'),
        ),
        (
            "arguments-large-numbers",
            "Digits of a number are not lost: the arguments pass as text.",
            call(arguments='{"id":12345678901234567890}'),
        ),
        ("arguments-numbers", "Zero, negative numbers and fractions stay.", call(arguments='{"a":0,"b":-1,"c":0.5,"d":-0.25}')),
        ("arguments-literals", "False and null are values, and not absent.", call(arguments='{"a":false,"b":null,"c":true}')),
        ("arguments-empty-values", "Empty texts, arrays and objects are values.", call(arguments='{"a":"","b":[],"c":{}}')),
        ("arguments-deep", "Objects within objects, twelve deep.", call(arguments='{"a":' * 12 + "1" + "}" * 12)),
        ("arguments-key-with-tag", "A tag is a key's text too.", call(arguments='{"<tool_call>":"</tool_call>"}')),
        (
            "arguments-named-as-the-call",
            "Arguments may be called name and arguments.",
            call(arguments='{"name":"x","arguments":"{}"}'),
        ),
        (
            "arguments-and-another-key",
            "A third key beside name and arguments.",
            block('{"id":7,"name":"getFileTree","arguments":"{}"}'),
        ),
        (
            "duplicate-keys",
            "The last one wins, as everywhere in JSON.",
            block('{"name":"saveNote","name":"getFileTree","arguments":"{\\"path\\":\\"a/b\\"}"}'),
        ),
    ],
    "strings": [
        ("closing-tag-in-a-string", "The closing tag within a JSON string does not end the call.", path("x</tool_call>y")),
        ("opening-tag-in-a-string", "Nor does an opening tag begin another.", path("x<tool_call>y")),
        ("braces-in-a-string", "Braces and escaped quotes within a string are no JSON structure.", path('}{"][')),
        ("closing-brace-in-a-string", "A closing brace within a string ends nothing.", path("a}b")),
        ("opening-brace-in-a-string", "An opening brace within a string opens nothing.", path("a{b")),
        ("call-in-a-string", "A whole call within a string is a text.", path(ONE)),
        ("both-tags-in-a-string", "Both tags, in the wrong order, are a text.", path("</tool_call><tool_call>")),
        ("part-of-a-tag-in-a-string", "The beginning of a tag within a string is a text.", path("a </tool_ b <tool_")),
        ("code-in-a-string", "Back ticks within a string are no code.", path("```\ncode\n```")),
        ("brackets-in-a-string", "Brackets at the end of a string are no mistake.", path("a]>")),
        ("backslash-at-the-end", "A backslash before the closing quote is escaped itself.", path("C:\\temp\\")),
        ("quotes-in-a-string", "Escaped quotes stay.", path('say "hi"')),
        ("line-ends-in-a-string", "Escaped line ends and tabs stay.", path("a\nb\r\n\tc")),
        ("text-after-a-tag-in-a-string", "Text after such a call is still the user's.", f"{path('x</tool_call>y')} Done."),
    ],
    "unicode": [
        ("line-separators", "U+2028 and U+2029 are ordinary characters of JSON.", path("a\u2028b\u2029c\u0085d")),
        (
            "astral",
            "Characters beyond the basic plane, raw and as a pair of escapes.",
            call(arguments='{"path":"\U0001f600 \\ud83d\\ude00"}'),
        ),
        (
            "lone-surrogate",
            "Half a pair of escapes within the arguments: kept as the escape, or replaced; never a broken answer.",
            call(arguments='{"path":"\\ud83d"}'),
        ),
        (
            "escaped-name",
            "Any character of JSON may be an escape, that of a name too.",
            block(BODY.replace("getFile", "get\\u0046ile")),
        ),
        ("escaped-slash", "A slash may be escaped.", block(BODY.replace("a/b", "a\\/b"))),
        ("combining", "Characters are not composed.", f"e\u0301 {path('e' + chr(0x301) + ' ' + chr(0xE9))}"),
        ("right-to-left", "Text from right to left keeps its order.", f"\u05d0\u05d1 {path(chr(0x5D0) + chr(0x5D1))} \u05d2"),
        ("joined-symbols", "Symbols that are joined stay joined.", path("\U0001f469\u200d\U0001f4bb")),
    ],
    "opening-tag": [
        ("opening-tag-twice", "A call has exactly one opening tag: the second one is no part of anything.", OPEN + ONE),
        (
            "opening-tag-twice-on-two-lines",
            "The same with a line end between the tags, and text around the call.",
            f"Look. {OPEN}\n{ONE} Done.",
        ),
        ("opening-tag-three-times", "Two opening tags too many.", OPEN * 2 + ONE),
        ("both-tags-twice", "A call within a call: one call, and no tag is left.", OPEN + ONE + CLOSE),
        ("opening-tag-twice-then-a-call", "The call behind is well formed, and not lost.", f"{OPEN}{ONE} then {NOTE}"),
        (
            "opening-tag-missing",
            "A call has exactly one opening tag: without it there is no call, and the closing tag is no text.",
            BODY + CLOSE,
        ),
    ],
    "closing-tag": [
        ("closing-tag-twice", "A repeated closing tag is dropped.", ONE + CLOSE),
        ("closing-tag-three-times", "Two closing tags too many.", ONE + CLOSE * 2),
        ("closing-tag-twice-and-text", "The text behind the repeated tag stays.", f"Look. {ONE}{CLOSE} Done."),
        ("closing-tag-twice-on-two-lines", "The repeated tag is on a line of its own.", f"{ONE}\n{CLOSE}\nDone."),
        ("closing-tag-twice-before-the-next", "The call behind the repeated tag is well formed.", ONE + CLOSE + NOTE),
        ("closing-tag-missing", "The stream ends after whole JSON: a call, or nothing; never markup.", OPEN + BODY),
        ("closing-tag-missing-before-the-next", "The next call begins before the first was closed.", OPEN + BODY + NOTE),
    ],
    "trailing": [
        ("trailing-bracket", "A stray '>' after the JSON.", block(BODY + ">")),
        ("trailing-bracket-after", "A stray '>' after the closing tag is no text for the user.", ONE + ">"),
        ("trailing-brace", "An extra brace behind the object, within the tags.", block(BODY + "}")),
        (
            "trailing-brace-and-text",
            "The same with text around the call, which stays.",
            f"Look. {block(BODY + '} }'.replace('} }', ' }'))} Done.",
        ),
        ("trailing-two-braces", "Two extra braces.", block(BODY + "}}")),
        ("trailing-square-bracket", "A closing square bracket without an opening one.", block(BODY + "]")),
        ("trailing-brace-and-bracket", "A brace and a bracket too many.", block(BODY + "}>")),
        ("trailing-brace-then-a-call", "The call behind is well formed, and not lost.", f"{block(BODY + '}')} then {NOTE}"),
        ("trailing-fence", "A code fence behind the object.", block(BODY + "\n```")),
    ],
    "array": [
        ("array", "A call wrapped in an array is still a call.", block(f"[{BODY}]")),
        ("array-with-spaces", "The array on lines of its own.", block(f"\n[\n{BODY}\n]\n")),
        ("array-and-text", "The text around the array stays.", f"Look. {block(f'[{BODY}]')} Done."),
        ("array-then-a-call", "The call behind is well formed, and not lost.", f"{block(f'[{BODY}]')} then {NOTE}"),
    ],
    "fence-inside": [
        ("fences-inside", "Code fences around the JSON.", block(f"```json\n{BODY}\n```")),
        ("fences-inside-without-language", "Code fences that name no language.", block(f"\n```\n{BODY}\n```\n")),
        (
            "fences-inside-and-text",
            "The text around the block stays.",
            f"Look. {block(f'```json{chr(10)}{BODY}{chr(10)}```')} Done.",
        ),
        ("fence-inside-not-closed", "A code fence that only opens.", block(f"```json\n{BODY}\n")),
    ],
    "cut-off": [
        ("truncated-in-json", "The stream ends within the JSON: no call, and no markup.", OPEN + '{"name":"getFileTree","argu'),
        ("truncated-in-json-after-text", "The text before it is the user's.", f'Let me look. {OPEN}{{"name":"getFi'),
        (
            "truncated-in-opening-tag",
            "The stream ends within the opening tag: no call; the few characters may be text.",
            "Let me look. <tool_ca",
        ),
        ("truncated-in-closing-tag", "The JSON was whole: a call, or nothing; never markup.", OPEN + BODY + "</tool_"),
        ("truncated-after-the-opening-tag", "The stream ends directly after the opening tag.", f"Let me look. {OPEN}"),
        ("truncated-in-the-arguments", "The stream ends within the arguments.", OPEN + BODY[:-6]),
        ("truncated-before-the-last-brace", "The stream ends before the object does.", OPEN + BODY[:-1]),
        ("truncated-in-an-escape", "The stream ends within an escape.", OPEN + '{"name":"getFileTree","arguments":"{\\'),
        ("truncated-after-a-call", "The call that was whole is not lost.", f'{ONE} and {OPEN}{{"name":"saveN'),
    ],
    "no-call": [
        (
            "unknown-tool",
            "A tool that was not declared: passed on for the client to refuse, or dropped; never markup.",
            call("deleteEverything", "{}"),
        ),
        ("tool-in-other-case", "The name of a tool is not the same in other letters.", call("GETFILETREE", "{}")),
        (
            "renamed-keys",
            "Other keys than name and arguments: understood, dropped, or shown whole as it was written.",
            block(RENAMED),
        ),
        (
            "not-json",
            "No JSON between the tags: no call; dropped, or shown whole as it was written.",
            f"Well. {block('getFileTree(a/b)')} So.",
        ),
        ("empty", "Nothing between the tags: no call; dropped, or shown whole as it was written.", f"Well. {block('')} So."),
        ("only-white-space", "White space between the tags is no call.", f"Well. {block(chr(10))} So."),
        ("empty-object", "An object without a name is no call.", f"Well. {block('{}')} So."),
        ("empty-array", "An empty array holds no call.", f"Well. {block('[]')} So."),
        ("a-number", "JSON that is no object is no call.", f"Well. {block('7')} So."),
        ("a-text", "A JSON text is no call.", f"Well. {block(json.dumps('getFileTree'))} So."),
        ("name-not-text", "A name that is no text names no tool.", block('{"name":7,"arguments":"{}"}')),
    ],
    "code": [
        ("in-a-code-block", "A call within a code block: shown whole, or a call.", CODE),
        ("in-a-code-span", "A call within back ticks: shown whole, or a call.", f"Write `{ONE}` to list."),
        (
            "in-a-block-of-tildes",
            "A call within a code block of tildes: shown whole, or a call.",
            f"So:\n~~~\n{ONE}\n~~~\nThat is all.",
        ),
        ("in-a-block-with-a-language", "A code block that names its language.", f"So:\n```xml\n{ONE}\n```\nThat is all."),
        ("after-a-code-block", "A code block that was closed hides nothing.", f"```\ncode\n```\n{ONE}"),
        ("after-a-code-span", "A code span that was closed hides nothing.", f"Look at `a.py` first. {ONE}"),
        ("between-code-blocks", "A call between two code blocks is a call.", f"```\na\n```\n{ONE}\n```\nb\n```"),
        ("before-a-code-block", "A code block behind a call is text.", f"{ONE}\n```\ncode\n```"),
        ("code-block-alone", "A code block is text, to the character.", "```json\n{}\n```\n"),
    ],
    "large": [("large", "A megabyte of arguments.", path("${1M}"))],
}

#: A text, what to call its splits, and where it is cut: each is a vector.
TORN = f"Look. {ONE} Done."
ESCAPES = call(arguments='{"path":"\\ud83d\\ude00 \\"x\\" \\n"}')


def splits() -> Iterator[Text]:
    """The texts that are cut at the points where a parser that reads piece by piece goes wrong."""
    begin, end = TORN.index(OPEN), TORN.index(CLOSE)
    for at in range(1, len(CLOSE) + 1):
        cuts = (begin + min(at, len(OPEN)), end + at)
        yield Text("split", f"torn-tags-{at}", f"Both tags are torn after {at} characters.", TORN, cuts)
    yield Text("split", "torn-nowhere", "The whole answer is one piece.", TORN, ())
    yield Text("split", "torn-around", "Each tag is a piece of its own.", TORN, (begin, begin + len(OPEN), end, end + len(CLOSE)))
    points = {
        "in-the-name": (ONE, "getFile"),
        "before-the-object": (block(" " + BODY), OPEN),
        "behind-the-object": (block(BODY + " "), BODY),
        "in-an-escape": (ESCAPES, '\\\\"x\\'),
        "in-a-pair-of-escapes": (ESCAPES, "ud83d"),
        "in-one-of-the-pair": (ESCAPES, "ud8"),
        "between-two-calls": (ONE + NOTE, ONE),
        "between-call-and-line-end": (f"{ONE}\n{NOTE}", ONE),
        "in-a-tag-in-a-string": (path("x</tool_call>y"), "x</tool_"),
        "behind-a-tag-in-a-string": (path("x</tool_call>y"), "x</tool_call>"),
        "between-the-opening-tags": (OPEN + ONE, OPEN),
        "in-the-second-opening-tag": (OPEN + ONE, OPEN + "<tool"),
        "between-the-closing-tags": (ONE + CLOSE, CLOSE),
        "in-the-second-closing-tag": (ONE + CLOSE, CLOSE + "</tool"),
        "before-a-trailing-brace": (block(BODY + "}"), BODY),
        "behind-a-trailing-brace": (block(BODY + "}"), BODY + "}"),
        "before-a-trailing-bracket": (block(BODY + ">"), BODY),
        "before-a-bracket-behind": (ONE + ">", CLOSE),
        "in-the-array": (block(f"[{BODY}]"), OPEN + "["),
        "before-the-arrays-end": (block(f"[{BODY}]"), BODY),
        "in-the-fence-inside": (block(f"```json\n{BODY}\n```"), "``"),
        "in-a-code-fence": (CODE, "``"),
        "in-a-code-block": (CODE, "form:\n```\n<tool_"),
        "behind-a-code-block": (f"```\ncode\n```\n{ONE}", "code\n```"),
        "in-the-last-fence": (f"```\ncode\n```\n{ONE}", "code\n`"),
        "behind-a-less-than": ("if a < b then <tool> and <b>", "then <"),
        "in-another-tag": ("if a < b then <tool> and <b>", "then <tool"),
        "in-a-longer-tag": ("It is <tool_calls> here.", "<tool_call"),
    }
    for name, (text, before) in points.items():
        yield Text(
            "split", f"torn-{name}", f"The stream is cut {name.replace('-', ' ')}.", text, (text.index(before) + len(before),)
        )


def texts() -> Iterator[Text]:
    """All texts of the file, in its order."""
    for feature, rows in ROWS.items():
        for name, why, text in rows:
            yield Text(feature, name, why, text)
    yield from splits()
