"""No dead words: terms that were given up in favour of a standard one are no names in the code and no terms in the documents.

A table has each term, the term that replaces it and where it is dead. Words that are plain English in a sentence ("again",
"told", "hidden") are dead as the names of modules, classes and functions alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

import pytest

from tests.laws.import_graph import ROOT, sources
from tests.tools.random_sentences import sentences

#: Dead in every name (modules, classes, functions, parameters), as a part of it too -> what to write.
PARTS = {
    "deck": "player",
    "tape": "track",
    "tapes": "tracks",
    "taker": "trace collector",
    "takers": "trace collectors",
    "story": "trace",
    "stories": "traces",
    "heed": "install_signal_handlers",
    "terse": "failure limit",
    "mended": "rewritten, corrected",
}
#: Dead as a whole name of a module, a class or a function -> what to write.
WHOLE = {
    "again": "rerun command, retry",
    "alike": "group failures",
    "beside": "align, side by side, the keys of a union",
    "brief": "truncate",
    "captures": "trace sources",
    "counted": "plural",
    "finding": "LintFinding, DriftFinding",
    "followers": "repeated ids",
    "gone": "Disconnected, Absent, removed",
    "held": "locked, waiting",
    "hidden": "encoded body",
    "hold": "lock (folder), wait_for (connection)",
    "longest": "limit, max_chars",
    "most": "limit, max_chars",
    "otherwise": "content notes",
    "over": "match_on",
    "pieces": "chunks",
    "said": "message, text, payload",
    "say": "write_out, send",
    "seconds": "durations",
    "sort": "kind",
    "stand_in": "impersonate, write_launcher",
    "tell": "report_on, describe",
    "told": "report, text, description",
    "unread": "key errors",
    "words": "tokens, text",
}
#: Dead as a name that a function assigns -> what to write.
LOCALS = {
    "left_said": "left_text",
    "mend": "fix",
    "right_said": "right_text",
    "said": "message, text, payload",
    "says": "text, message",
    "told": "report, text, description",
}
#: Dead as a term of the documents -> what to write.
TERMS = {
    "deck": "player",
    "tape": "track",
    "taker": "trace collector",
    "stand_in": "write_launcher",
    "stand-in": "substitute",
    "story": "trace",
    "stories": "traces",
    "heed": "obey",
    "in vain": "the cause of a timeout",
    "fell over": "crashed",
    "falls over": "crashes",
    "all the same": "still",
    "to the letter": "exactly",
    "word for word": "exact",
    "hears of": "gets",
}
#: A sentence that begins with one of these words is not understood alone: the word refers to the sentence before.
LEANING = re.compile(
    r"(?:It|Its|They|Their|These|Those|Such|Then|There,|Otherwise|Afterwards|Even then|The reason:|(?:After|Before|With|In|For) "
    r"(?:this|that|these|those|such)\b(?! (?:page|section|module|class))|"
    r"This (?:also|has|holds|makes|means|needs|replaces|shows)|Both (?:also|are|have|may|must)|One reason)(?=[ ,:])"
)
#: A sentence that names an exception and not the condition under which the function raises it.
UNCONDITIONAL = re.compile(r"(?:^|; )[Rr]aises? `+[\w.]+`+(?: \(\d+\))?(?:(?:,| or| and) `+[\w.]+`+)*(?: with an? \w+)?\.$")
#: A sentence that begins with "Of X" has its subject at a place where no reader expects it.
INVERTED = re.compile(
    r"(?:- (?:<a id=\S+></a>\*\*\S+ )?)?Of (?:the|its|all|these|each)\b|.*[,;] nor (?:is|are|do|does|did|has|have)\b"
    r"|.*(?:[,;:] only then|[,;] and so) (?:is|are|can|do|does|did|has|have)\b"
    r"|(?:- )?(?:In|At|On|Under) no(?: \w+){1,4} (?:is|are|can|do|does|did|has|have)\b"
)
#: A wording that is often misread -> what to write.
MISREAD = {
    r"(?:- )?(?:Note|Take note)\b": "Record, Store or Remember, because 'Note that' also begins a remark to the reader",
    r".*(?<![Tt]here )\b(?:is|are|was|were) no (?!longer\b|more\b)\w": "'is not a' in place of 'is no'",
}
#: Texts that begin so on purpose: a model speaks in them.
SPOKEN_BY_A_MODEL = frozenset({"It flew to the quay."})
#: Names that stay, with the reason.
KEPT = {
    "story": "the key of report.json, format 2, which programs read",
    "stories.ndjson": "a file of the report, format 2, which programs read",
}
PACKAGES = ("codex_replay", "codex_fakes", "suites")
FOLDERS = ("docs/schema", "docs/drift")  # generated from Codex's own schemas


def dead_names(module: str, source: str) -> Iterator[str]:
    """Yield a sentence for each dead name of a module: its own, and those of its classes, functions, parameters and locals."""
    names = [module.rpartition(".")[2]]
    whole = set(names)
    nodes = list(ast.walk(ast.parse(source)))
    for node in nodes:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.append(node.name)
            whole.add(node.name)
        elif isinstance(node, ast.arg):
            names.append(node.arg)
    for name in dict.fromkeys(names):
        plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_")
        for part in plain.split("_"):
            if part in PARTS:
                yield f"{module}: {name}: {part} is dead; write {PARTS[part]}"
        if name in whole and plain in WHOLE:
            yield f"{module}: {name} is dead; write {WHOLE[plain]}"
    if _stored(nodes).isdisjoint(LOCALS):
        return
    for function in nodes:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = list(ast.walk(function))
            parameters = {node.arg for node in inner if isinstance(node, ast.arg)}
            for name in sorted(_stored(inner) & LOCALS.keys() - parameters):
                yield f"{module}: {name} in {function.name} is dead; write {LOCALS[name]}"


def _stored(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def dead_terms(name: str, text: str) -> Iterator[str]:
    """Yield a sentence for each dead term in a document, outside of the names that stay."""
    for number, line in enumerate(text.splitlines(), 1):
        for kept in sorted(KEPT, key=len, reverse=True):
            line = line.replace(f"`{kept}`", "").replace(kept, "") if "." in kept else line.replace(f"`{kept}`", "")
        for term, instead in TERMS.items():
            if re.search(rf"(?<![\w-]){re.escape(term)}(?![\w-])", line, re.IGNORECASE):
                yield f"{name}:{number}: {term} is dead; write {instead}"


def leaning(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each sentence that begins with a word for a thing in the sentence before."""
    for place, sentence in found:
        word = LEANING.match(sentence.removeprefix("- "))
        if word and sentence not in SPOKEN_BY_A_MODEL:
            yield f"{place}: name the thing in place of '{word[0]}': {sentence}"


def inverted(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each sentence whose subject comes late."""
    for place, sentence in found:
        if INVERTED.match(sentence):
            yield f"{place}: begin with the subject: {sentence}"


def misread(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each sentence with a wording that is often misread."""
    for place, sentence in found:
        yield from (
            f"{place}: write {instead}: {sentence}" for wording, instead in MISREAD.items() if re.match(wording, sentence)
        )


def unconditional(found: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each sentence that names an exception without its condition."""
    for place, sentence in found:
        if UNCONDITIONAL.search(sentence):
            yield f"{place}: add the condition ('if ...', 'for ...'): {sentence}"


@pytest.mark.parametrize("package", PACKAGES)
def test_no_dead_word_is_a_name(package: str) -> None:
    assert [found for module, source in sources(package).items() for found in dead_names(module, source)] == []


def test_no_dead_word_is_a_term_of_the_documents() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    named = {path.relative_to(ROOT).as_posix(): path for path in pages}
    texts = {name: path.read_text(encoding="utf-8") for name, path in named.items() if not name.startswith(FOLDERS)}
    assert len(texts) > 30
    assert [found for name, text in texts.items() for found in dead_terms(name, text)] == []


@pytest.fixture(scope="module")
def every_sentence() -> list[tuple[str, str]]:
    return sentences(ROOT)


def test_the_sentences_are_prose_of_all_pages(every_sentence: list[tuple[str, str]]) -> None:
    assert not [place for place, sentence in every_sentence if sentence.startswith("python -m")]
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md"} < {place for place, _ in every_sentence}


def test_every_sentence_is_understood_alone(every_sentence: list[tuple[str, str]]) -> None:
    """A reader meets one sentence, in a failure or a tooltip: none begins with a word for a thing in the sentence before."""
    found = every_sentence
    assert len(found) > 10_000
    assert list(leaning(found)) == []


def test_every_sentence_begins_with_its_subject(every_sentence: list[tuple[str, str]]) -> None:
    assert list(inverted(every_sentence)) == []


def test_no_sentence_has_a_wording_that_is_often_misread(every_sentence: list[tuple[str, str]]) -> None:
    assert list(misread(every_sentence)) == []


@pytest.mark.parametrize(
    "sentence", ["Note that the run has ended.", "Take note of a line.", "A miss is no error.", "The old files are no cassettes."]
)
def test_a_wording_that_is_often_misread_is_found(sentence: str) -> None:
    assert len(list(misread([("page", sentence)]))) == 1


@pytest.mark.parametrize(
    "sentence",
    ["There is no file.", "If there are no turns, stop.", "The run is no longer open.", "Notes are lines.", "It is no more."],
)
def test_an_ordinary_negation_is_good(sentence: str) -> None:
    assert list(misread([("page", sentence)])) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Of the log, it writes one line.",
        "- Of its fields, one is kept.",
        "The proxy sent nothing, nor did it end.",
        "The line is JSON; only then can it be read.",
        "The call stays, and so does its output.",
        "In no allowed outcome does the user see it.",
    ],
)
def test_an_inverted_sentence_is_found(sentence: str) -> None:
    assert len(list(inverted([("page", sentence)]))) == 1


def test_every_exception_has_its_condition(every_sentence: list[tuple[str, str]]) -> None:
    assert list(unconditional(every_sentence)) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Raises `BadPatch`.",
        "Return the hunks; raises `BadPatch`.",
        "Raises `Unable` with a sentence.",
        "Raises `OSError`, `OverflowError` or `UnicodeError`.",
        "Raises `ProxyError` (400).",
    ],
)
def test_an_exception_without_a_condition_is_found(sentence: str) -> None:
    assert len(list(unconditional([("page", sentence)]))) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Raises `BadPatch` if the patch is invalid.",
        "Reading a missing key raises `SubjectFailure`.",
        "A bad level raises `ValueError`.",
    ],
)
def test_an_exception_with_a_condition_is_good(sentence: str) -> None:
    assert list(unconditional([("page", sentence)])) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "It ends the run.",
        "- They are in order.",
        "Such a line is dropped.",
        "The reason: nobody reads it.",
        "One reason: the file is open.",
        "With this, no case fails.",
        "After that, run the suite.",
        "Then the run ends.",
        "This replaces an earlier call.",
        "Both also wait for a reply.",
    ],
)
def test_a_leaning_sentence_is_found(sentence: str) -> None:
    assert len(list(leaning([("page", sentence)]))) == 1


@pytest.mark.parametrize(
    "sentence",
    [
        "Items are kept.",
        "Therefore a run ends.",
        "In this page, V is a version.",
        "This event ends the stream.",
        "Both seams share a clock.",
        "Theirs is another.",
        "It flew to the quay.",
    ],
)
def test_a_sentence_that_names_its_thing_is_good(sentence: str) -> None:
    assert list(leaning([("page", sentence)])) == []


@pytest.mark.parametrize(
    "source",
    [
        "class Deck: ...",
        "class TapeReader: ...",
        "def heed_signals(): ...",
        "def f(stories): ...",
        "def f(*, story=None): ...",
        "def stand_in(): ...",
        "class Finding: ...",
        "async def beside(): ...",
        "def told(): ...",
        "class Said: ...",
        "def _held(): ...",
        "def pieces(self): ...",
        "def gone(): ...",
        "def tell(): ...",
        "def _say(): ...",
        "async def hold(): ...",
        "class Over: ...",
        "def f():\n    said = 1",
        "def f(x):\n    return [told for told in x]",
    ],
)
def test_a_dead_name_is_found(source: str) -> None:
    assert len(list(dead_names("codex_replay.core.good", source))) == 1


def test_a_dead_module_is_found() -> None:
    assert len(list(dead_names("codex_replay.core.alike", ""))) == 1


def test_names_that_only_contain_a_dead_word_are_good() -> None:
    source = "class History: ...\ndef last_words(seconds, most): ...\ndef sort_key(): ...\nstory = 1\n"
    assert list(dead_names("codex_replay.core.escape", source)) == []


@pytest.mark.parametrize("line", ["It replays a deck of cassettes.", "The Stories of a run", "a stand-in for codex"])
def test_a_dead_term_is_found(line: str) -> None:
    assert len(list(dead_terms("page", line))) == 1


@pytest.mark.parametrize("line", ["| `story` | the key |", "`stories.ndjson` has the traces", "history, tapestry"])
def test_a_name_that_stays_is_no_dead_term(line: str) -> None:
    assert list(dead_terms("page", line)) == []


def test_the_tables_are_of_use() -> None:
    """A replacement is not itself dead, and no term is listed twice."""
    assert not PARTS.keys() & WHOLE.keys()
    for instead in {**PARTS, **WHOLE}.values():
        assert not set(re.split(r"[ ,_]+", instead.lower())) & PARTS.keys()
