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
            "Models put the tags on separate lines.",
            block("\n" + BODY.replace(":", ": ", 1) + "\n") + "\n",
        ),
        ("one-with-carriage-returns", "Lines may end as on Windows.", block("\r\n" + BODY + "\r\n") + "\r\n"),
        ("one-with-tabs", "A tab is white space too.", f"\t{block(chr(9) + BODY + chr(9))}\t"),
        (
            "keys-in-other-order",
            "The order of the keys in a call has no meaning.",
            block('{"arguments":"{\\"path\\":\\"a/b\\"}","name":"getFileTree"}'),
        ),
        ("spaces-inside", "The JSON of a call may have spaces.", block(SPACED)),
        (
            "on-many-lines",
            "The JSON of a call may have line ends between its tokens.",
            block('{\n  "name":\n  "getFileTree",\n  "arguments":\n  "{}"\n}'),
        ),
    ],
    "text-around": [
        ("text-before", "Text before a call is the user's.", f"Let me look. {ONE}"),
        ("text-after", "Text after a call is the user's.", f"{ONE} Done."),
        ("text-around", "Text is on both sides of a call, and the call leaves no trace in the text.", f"Before. {ONE} After."),
        ("text-adjacent", "There is no blank between the text and the tags.", f"Before.{ONE}After."),
        ("text-on-other-lines", "The text and the call are separate paragraphs.", f"Before.\n\n{ONE}\n\nAfter."),
        ("text-with-json", "JSON outside the tags is text.", f'I use {{"name":"getFileTree"}} now: {ONE} [1] "done"'),
        ("text-with-less-than", "A '<' in the text does not begin a tag.", f"if a < b: {ONE} and c <d> is text"),
        (
            "text-with-greater-than",
            "A '>' that is part of the text stays, except directly after a closing tag.",
            f"a > b {ONE} c > d",
        ),
        (
            "text-of-symbols",
            "Characters beyond the basic plane of Unicode are directly before and after the tags.",
            f"\U0001f50d{ONE}\u2705",
        ),
    ],
    "several": [
        ("two", "Two calls must keep their order.", f"{ONE}\n{NOTE}"),
        ("two-without-space", "There is nothing between the two calls.", ONE + NOTE),
        ("two-the-same", "The same call twice is two calls.", ONE + ONE),
        ("two-of-one-tool", "Two calls of one tool keep their own arguments.", path("first") + path("second")),
        ("two-with-text-between", "Text between two calls stays.", f"{ONE} and {NOTE}"),
        ("three-and-text", "There is text before, between and after several calls.", f"One {ONE} two {NOTE} three {ONE} four"),
        ("five", "Many calls keep their order.", "".join(path(each) for each in "edcba")),
    ],
    "plain": [
        ("plain", "The text has no call.", "Just text."),
        (
            "plain-less-than",
            "A '<' that does not begin a tag is text, and must not be lost.",
            "if a < b and b <c then <tool> or <tool_calls> is fine <",
        ),
        (
            "plain-odd",
            "No character of plain text is changed.",
            '\u00ab\u00fc\u00bb \U0001f600 \u2028 \\ " {"name":"getFileTree"}',
        ),
        ("plain-tag-name", "The name of the tag without its brackets is text.", "Write tool_call or /tool_call> here."),
        ("plain-json", "A call without its tags is text.", f"It would be {BODY}."),
        ("plain-white-space", "Blanks and line ends of plain text stay as they are.", "  a\n\n\tb  \r\n c  "),
        ("plain-html", "Tags with other names are text.", "<p>One <b>bold</b> word</p>"),
        ("plain-tag-not-ended", "A tag without its '>' is text.", "<tool_call is not ended, and </tool_call neither."),
        ("plain-blank-in-the-tag", "A blank in the tag makes it text.", "Not < tool_call> and not <tool_call >."),
        ("plain-quotes", "Quotes and braces in plain text do not begin a call.", 'He said "{" and then }} or ]["'),
    ],
    "arguments": [
        ("arguments-object", "The arguments are an object instead of a string: against the rules, but clear.", block(OBJECT)),
        (
            "arguments-empty-object",
            "A call without parameters has an empty object as its arguments, as the instructions require.",
            call(arguments="{}"),
        ),
        ("arguments-empty-string", "An empty string means that the call has no arguments.", call(arguments="")),
        ("arguments-missing", "A call without the key `arguments` has no arguments.", block('{"name":"getFileTree"}')),
        ("arguments-null", "Null means that the call has no arguments.", block('{"name":"getFileTree","arguments":null}')),
        (
            "arguments-nested",
            "Objects, arrays and numbers keep their types.",
            call(arguments='{"a":{"b":[1,2.5,null,true]},"c":""}'),
        ),
        (
            "arguments-large-numbers",
            "No digit of a large number is lost: the arguments are passed on as text.",
            call(arguments='{"id":12345678901234567890}'),
        ),
        (
            "arguments-numbers",
            "Zero, negative numbers and fractions in the arguments stay unchanged.",
            call(arguments='{"a":0,"b":-1,"c":0.5,"d":-0.25}'),
        ),
        (
            "arguments-literals",
            "False and null in the arguments are values, and must not be left out.",
            call(arguments='{"a":false,"b":null,"c":true}'),
        ),
        (
            "arguments-empty-values",
            "Empty texts, arrays and objects in the arguments are values, and must not be left out.",
            call(arguments='{"a":"","b":[],"c":{}}'),
        ),
        (
            "arguments-deep",
            "The arguments are objects within objects, twelve levels deep.",
            call(arguments='{"a":' * 12 + "1" + "}" * 12),
        ),
        ("arguments-key-with-tag", "A key of the arguments may contain a tag.", call(arguments='{"<tool_call>":"</tool_call>"}')),
        (
            "arguments-named-as-the-call",
            "The keys in the arguments may be `name` and `arguments`, as in the call.",
            call(arguments='{"name":"x","arguments":"{}"}'),
        ),
        (
            "arguments-and-another-key",
            "The call has a third key beside `name` and `arguments`.",
            block('{"id":7,"name":"getFileTree","arguments":"{}"}'),
        ),
        (
            "duplicate-keys",
            "The call has the same key twice: as usual in JSON, the last one wins.",
            block('{"name":"saveNote","name":"getFileTree","arguments":"{\\"path\\":\\"a/b\\"}"}'),
        ),
    ],
    "strings": [
        ("closing-tag-in-a-string", "The closing tag within a JSON string does not end the call.", path("x</tool_call>y")),
        ("opening-tag-in-a-string", "An opening tag within a JSON string does not begin another call.", path("x<tool_call>y")),
        ("braces-in-a-string", "Braces and escaped quotes within a string are not part of the JSON structure.", path('}{"][')),
        ("closing-brace-in-a-string", "A closing brace within a string does not end an object.", path("a}b")),
        ("opening-brace-in-a-string", "An opening brace within a string does not begin an object.", path("a{b")),
        ("call-in-a-string", "A whole call within a JSON string is part of the string.", path(ONE)),
        (
            "both-tags-in-a-string",
            "Both tags, in the wrong order, within a JSON string are part of the string.",
            path("</tool_call><tool_call>"),
        ),
        (
            "part-of-a-tag-in-a-string",
            "The beginning of a tag within a JSON string is part of the string.",
            path("a </tool_ b <tool_"),
        ),
        ("code-in-a-string", "Back ticks within a JSON string do not begin a code block.", path("```\ncode\n```")),
        ("brackets-in-a-string", "Brackets at the end of a JSON string are part of the string.", path("a]>")),
        (
            "backslash-at-the-end",
            "The backslash before the closing quote is escaped, so the quote ends the string.",
            path("C:\\temp\\"),
        ),
        ("quotes-in-a-string", "Escaped quotes in the arguments stay.", path('say "hi"')),
        ("line-ends-in-a-string", "Escaped line ends and tabs in the arguments stay.", path("a\nb\r\n\tc")),
        (
            "text-after-a-tag-in-a-string",
            "Text after a call with a tag in its arguments is the user's.",
            f"{path('x</tool_call>y')} Done.",
        ),
    ],
    "unicode": [
        ("line-separators", "U+2028 and U+2029 are ordinary characters in JSON.", path("a\u2028b\u2029c\u0085d")),
        (
            "astral",
            "The arguments have characters beyond the basic plane of Unicode, raw and as a pair of escapes.",
            call(arguments='{"path":"\U0001f600 \\ud83d\\ude00"}'),
        ),
        (
            "lone-surrogate",
            "The arguments have half a pair of escapes: the proxy may keep or replace it, but must not break the answer.",
            call(arguments='{"path":"\\ud83d"}'),
        ),
        (
            "escaped-name",
            "Any character of a JSON string may be an escape, also in the name of the tool.",
            block(BODY.replace("getFile", "get\\u0046ile")),
        ),
        ("escaped-slash", "A slash in a JSON string may be escaped.", block(BODY.replace("a/b", "a\\/b"))),
        (
            "combining",
            "Combining characters are not joined into one character.",
            f"e\u0301 {path('e' + chr(0x301) + ' ' + chr(0xE9))}",
        ),
        ("right-to-left", "Text from right to left keeps its order.", f"\u05d0\u05d1 {path(chr(0x5D0) + chr(0x5D1))} \u05d2"),
        ("joined-symbols", "Symbols that are joined stay joined.", path("\U0001f469\u200d\U0001f4bb")),
    ],
    "opening-tag": [
        ("opening-tag-twice", "A call has exactly one opening tag: the proxy must drop the second one.", OPEN + ONE),
        (
            "opening-tag-twice-on-two-lines",
            "The opening tag is repeated after a line end, and there is text before and after the call.",
            f"Look. {OPEN}\n{ONE} Done.",
        ),
        ("opening-tag-three-times", "The call has two opening tags too many.", OPEN * 2 + ONE),
        ("both-tags-twice", "Both tags are repeated: the client gets one call, and no tag.", OPEN + ONE + CLOSE),
        (
            "opening-tag-twice-then-a-call",
            "A well-formed call follows the malformed one, and must not be lost.",
            f"{OPEN}{ONE} then {NOTE}",
        ),
        (
            "opening-tag-missing",
            "Without an opening tag there is no call, and the closing tag is not text for the user.",
            BODY + CLOSE,
        ),
    ],
    "closing-tag": [
        ("closing-tag-twice", "The proxy must drop a repeated closing tag.", ONE + CLOSE),
        ("closing-tag-three-times", "The call has two closing tags too many.", ONE + CLOSE * 2),
        ("closing-tag-twice-and-text", "The text after a repeated closing tag stays.", f"Look. {ONE}{CLOSE} Done."),
        ("closing-tag-twice-on-two-lines", "The repeated closing tag is on a separate line.", f"{ONE}\n{CLOSE}\nDone."),
        (
            "closing-tag-twice-before-the-next",
            "A well-formed call follows a repeated closing tag, and must not be lost.",
            ONE + CLOSE + NOTE,
        ),
        (
            "closing-tag-missing",
            "The stream ends after the complete JSON: the client gets a call or nothing, but no markup.",
            OPEN + BODY,
        ),
        (
            "closing-tag-missing-before-the-next",
            "The next call begins before the closing tag of the first call.",
            OPEN + BODY + NOTE,
        ),
    ],
    "trailing": [
        ("trailing-bracket", "There is a stray '>' after the JSON.", block(BODY + ">")),
        ("trailing-bracket-after", "A stray '>' after the closing tag is not text for the user.", ONE + ">"),
        ("trailing-brace", "There is an extra brace after the object, within the tags.", block(BODY + "}")),
        (
            "trailing-brace-and-text",
            "There is an extra brace after the object; the text before and after the call stays.",
            f"Look. {block(BODY + '} }'.replace('} }', ' }'))} Done.",
        ),
        ("trailing-two-braces", "There are two extra braces after the object.", block(BODY + "}}")),
        (
            "trailing-square-bracket",
            "There is a closing square bracket after the object, without an opening one.",
            block(BODY + "]"),
        ),
        ("trailing-brace-and-bracket", "There are an extra brace and a stray '>' after the object.", block(BODY + "}>")),
        (
            "trailing-brace-then-a-call",
            "A well-formed call follows the malformed one, and must not be lost.",
            f"{block(BODY + '}')} then {NOTE}",
        ),
        ("trailing-fence", "There is a code fence after the object.", block(BODY + "\n```")),
    ],
    "array": [
        ("array", "A call wrapped in an array is still a call.", block(f"[{BODY}]")),
        ("array-with-spaces", "The call is in an array on separate lines.", block(f"\n[\n{BODY}\n]\n")),
        (
            "array-and-text",
            "The call is in an array; the text before and after the call stays.",
            f"Look. {block(f'[{BODY}]')} Done.",
        ),
        (
            "array-then-a-call",
            "A well-formed call follows the malformed one, and must not be lost.",
            f"{block(f'[{BODY}]')} then {NOTE}",
        ),
    ],
    "fence-inside": [
        ("fences-inside", "There are code fences around the JSON, within the tags.", block(f"```json\n{BODY}\n```")),
        ("fences-inside-without-language", "The code fences within the tags name no language.", block(f"\n```\n{BODY}\n```\n")),
        (
            "fences-inside-and-text",
            "There are code fences within the tags; the text before and after the call stays.",
            f"Look. {block(f'```json{chr(10)}{BODY}{chr(10)}```')} Done.",
        ),
        ("fence-inside-not-closed", "A code fence within the tags is not closed.", block(f"```json\n{BODY}\n")),
    ],
    "cut-off": [
        (
            "truncated-in-json",
            "The stream ends within the JSON: the client gets no call and no markup.",
            OPEN + '{"name":"getFileTree","argu',
        ),
        (
            "truncated-in-json-after-text",
            "The stream ends within the JSON; the text before the call is the user's.",
            f'Let me look. {OPEN}{{"name":"getFi',
        ),
        (
            "truncated-in-opening-tag",
            "The stream ends within the opening tag: there is no call; the characters of the tag may be text.",
            "Let me look. <tool_ca",
        ),
        (
            "truncated-in-closing-tag",
            "The stream ends within the closing tag: the client gets a call or nothing, but no markup.",
            OPEN + BODY + "</tool_",
        ),
        ("truncated-after-the-opening-tag", "The stream ends directly after the opening tag.", f"Let me look. {OPEN}"),
        ("truncated-in-the-arguments", "The stream ends within the arguments.", OPEN + BODY[:-6]),
        ("truncated-before-the-last-brace", "The stream ends before the last brace of the object.", OPEN + BODY[:-1]),
        (
            "truncated-in-an-escape",
            "The stream ends within an escape of a JSON string.",
            OPEN + '{"name":"getFileTree","arguments":"{\\',
        ),
        (
            "truncated-after-a-call",
            "The stream ends within the second call: the complete first call must not be lost.",
            f'{ONE} and {OPEN}{{"name":"saveN',
        ),
    ],
    "no-call": [
        (
            "unknown-tool",
            "The client has not declared the tool: the proxy may pass the call on or drop it, but must not show markup.",
            call("deleteEverything", "{}"),
        ),
        (
            "tool-in-other-case",
            "A name of a tool in upper case is another tool, which the client has not declared.",
            call("GETFILETREE", "{}"),
        ),
        (
            "renamed-keys",
            "The call has other keys than `name` and `arguments`: the proxy may accept it, drop it, or show it unchanged.",
            block(RENAMED),
        ),
        (
            "not-json",
            "There is no JSON between the tags, so there is no call: the proxy may drop the block, or show it unchanged.",
            f"Well. {block('getFileTree(a/b)')} So.",
        ),
        (
            "empty",
            "There is nothing between the tags, so there is no call: the proxy may drop the block, or show it unchanged.",
            f"Well. {block('')} So.",
        ),
        ("only-white-space", "White space between the tags is not a call.", f"Well. {block(chr(10))} So."),
        ("empty-object", "An object without a name is not a call.", f"Well. {block('{}')} So."),
        ("empty-array", "An empty array holds no call.", f"Well. {block('[]')} So."),
        ("a-number", "JSON that is not an object is not a call.", f"Well. {block('7')} So."),
        ("a-text", "A JSON string is not a call.", f"Well. {block(json.dumps('getFileTree'))} So."),
        ("name-not-text", "A name that is not a string names no tool.", block('{"name":7,"arguments":"{}"}')),
    ],
    "code": [
        ("in-a-code-block", "A call within a code block may be shown unchanged, or be a call.", CODE),
        ("in-a-code-span", "A call within back ticks may be shown unchanged, or be a call.", f"Write `{ONE}` to list."),
        (
            "in-a-block-of-tildes",
            "A call within a code block of tildes may be shown unchanged, or be a call.",
            f"So:\n~~~\n{ONE}\n~~~\nThat is all.",
        ),
        (
            "in-a-block-with-a-language",
            "A call within a code block that names its language may be shown unchanged, or be a call.",
            f"So:\n```xml\n{ONE}\n```\nThat is all.",
        ),
        ("after-a-code-block", "A call after a closed code block is a call.", f"```\ncode\n```\n{ONE}"),
        ("after-a-code-span", "A call after a closed code span is a call.", f"Look at `a.py` first. {ONE}"),
        ("between-code-blocks", "A call between two code blocks is a call.", f"```\na\n```\n{ONE}\n```\nb\n```"),
        ("before-a-code-block", "A code block after a call is text.", f"{ONE}\n```\ncode\n```"),
        ("code-block-alone", "A code block without a call is text, and stays unchanged.", "```json\n{}\n```\n"),
    ],
    "large": [("large", "The arguments have a megabyte of text.", path("${1M}"))],
}

#: A text, what to call its splits, and where it is cut: each is a vector.
TORN = f"Look. {ONE} Done."
ESCAPES = call(arguments='{"path":"\\ud83d\\ude00 \\"x\\" \\n"}')

#: The places of splits that their names do not describe well.
PLACES = {
    "in-one-of-the-pair": "in one escape of a pair",
    "before-a-bracket-behind": "before a stray '>' after the call",
    "before-the-arrays-end": "before the end of the array",
    "in-the-fence-inside": "in a code fence within the tags",
}


def splits() -> Iterator[Text]:
    """The texts that are cut at the points where a parser that reads piece by piece goes wrong."""
    begin, end = TORN.index(OPEN), TORN.index(CLOSE)
    for at in range(1, len(CLOSE) + 1):
        cuts = (begin + min(at, len(OPEN)), end + at)
        yield Text("split", f"torn-tags-{at}", f"Both tags are split after {at} character{'s' * (at > 1)}.", TORN, cuts)
    yield Text("split", "torn-nowhere", "The whole answer is one piece of the stream.", TORN, ())
    yield Text(
        "split",
        "torn-around",
        "Each tag is a separate piece of the stream.",
        TORN,
        (begin, begin + len(OPEN), end, end + len(CLOSE)),
    )
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
        place = PLACES.get(name) or name.replace("-", " ").replace("behind", "after")
        yield Text("split", f"torn-{name}", f"The stream is split {place}.", text, (text.index(before) + len(before),))


def texts() -> Iterator[Text]:
    """All texts of the file, in its order."""
    for feature, rows in ROWS.items():
        for name, why, text in rows:
            yield Text(feature, name, why, text)
    yield from splits()
