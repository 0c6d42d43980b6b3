"""The documentation is true: its links lead somewhere, its blocks are what they say, and its commands do what it shows.

Documents with commands that need the real Codex are run whole in tests/real/test_docs_real.py.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

from codex_replay.cli.main import VERBS, main
from codex_replay.plugin.base.option_table import KEYS, OTHERS
from tests.project.documents import ROOT, Block, Command, Document, fits, foreign, run

PATHS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs").glob("tutorials/*.md")),
]
DOCUMENTS = [Document.read(path) for path in PATHS]
RUN = [document for document in DOCUMENTS if document.sessions("yes", "collect")]
TARGETS = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.M)


def name_of(document: Document) -> str:
    return document.name


@pytest.mark.parametrize("path", PATHS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path: Path) -> None:
    assert broken_links(path.read_text(), path.parent) == []


def broken_links(text: str, folder: Path) -> list[str]:
    prose = re.sub(r"^```.*?^```$|`[^`\n]+`", "", text, flags=re.M | re.S)
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", prose)
    named = re.findall(r"(?<![\w./-])docs/[\w./-]+?\.md\b", text)
    return [link for link in links if not (folder / link).exists()] + [name for name in named if not (ROOT / name).exists()]


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_block_is_what_it_says(document: Document) -> None:
    assert document.wrong() == []


@pytest.mark.parametrize("document", RUN, ids=name_of)
def test_the_commands_do_what_the_document_shows(document: Document, tmp_path: Path) -> None:
    assert run(document, tmp_path, "yes", "collect") == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_the_commands_that_are_only_named_exist(document: Document) -> None:
    assert unknown(document) == []


def unknown(document: Document) -> list[str]:
    """Return what documents name of our commands and what there is not: verbs and options of codex-replay, make's targets."""
    said = []
    named = [*re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", document.text, flags=re.M | re.S))]
    named += [command.text for block in document.sessions("no") for command in block.commands()]
    for text in named:
        words = _words(text.split("#")[0])
        if words[:1] == ["make"] and len(words) > 1 and not set(words[1:2]) <= set(TARGETS):
            said.append(f"{document.name}: `{text}`: make has no such target.")
        if words[:1] == ["codex-replay"] and len(words) > 1:
            said += [f"{document.name}: `{text}`: {problem}" for problem in _no_such(words[1:])]
        if words[:1] == ["pytest"]:
            options = [word.split("=")[0] for word in words if word.startswith("--")]
            said += [f"{document.name}: `{text}`: no option {option}." for option in options if option not in PYTEST]
    return said


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # half a quotation
        return text.split()


PYTEST = {f"--{key}" for key in (*KEYS, *OTHERS)} | {"--collect-only", "--pyargs"}


def _no_such(words: list[str]) -> list[str]:
    command: click.Command = main
    context = click.Context(main)
    while words and isinstance(command, click.Group):
        names = words.pop(0).split("|")
        if names[0].startswith(("-", "[", "V")):
            return []
        found = [command.get_command(context, name) for name in names]
        if None in found:
            return [f"there is no {names[found.index(None)]}."]
        assert found[0] is not None
        command = found[0]
    if "--" in words:
        words = words[: words.index("--")]
    options = {option for parameter in command.params for option in [*parameter.opts, *parameter.secondary_opts]} | {"--help"}
    given = [match[0] for word in words if (match := re.match(r"--[\w-]+", word.lstrip("[")))]
    return [f"{command.name} has no option {option}." for option in given if option not in options]


def test_every_verb_is_shown_at_work_somewhere() -> None:
    shown = " ; ".join(
        command.text
        for document in DOCUMENTS
        for block in document.sessions("yes", "real", "collect")
        for command in block.commands()
    )
    assert [verb for verb in VERBS if not re.search(rf"codex-replay {verb}\b", shown)] == []


def test_what_is_not_run_is_little() -> None:
    blocks = [block for document in DOCUMENTS for block in document.blocks if block.language == "console"]
    assert len(blocks) > 40
    assert sum(block.how == "no" for block in blocks) < len(blocks) / 4


def test_the_site_has_every_page_and_loads_nothing(tmp_path: Path) -> None:
    """That it builds without a warning is `make docs`; this is what can be seen without building it."""
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = re.findall(r"[\w./-]+\.md", str(config["nav"]))
    pages = set(listed)
    assert len(listed) == len(pages), "a page stands twice in the nav"
    assert {str(path.relative_to(ROOT / "docs")) for path in PATHS[2:]} <= pages
    assert config["theme"]["font"] is False
    (tmp_path / "page.html").write_text(
        '<link rel="canonical" href="https://x"><script src="a.js"></script><a href="https://x">'
        '<img src="https://x/a.png"><link rel="stylesheet" href="//x/a.css">'
    )
    assert foreign(tmp_path) == ['page.html: <link rel="stylesheet" href="//x/a.css">', 'page.html: <img src="https://x/a.png">']


# The tests of what tests the documents: each kind of lie turns it red.

TRUE = """```console
$ echo one; echo two 3.14 s
one
…
$ false   # exit status 1
$ cd /; export A=b
```
text
```console
$ echo $A
b
```
"""


def problems(text: str, folder: Path) -> list[str]:
    document = Document("d.md", "<!-- folder: empty -->\n" + text)
    return document.wrong() + run(document, folder, "yes", "collect", linger=10)


def test_a_true_document_has_no_problem(tmp_path: Path) -> None:
    assert problems(TRUE, tmp_path) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TRUE.replace("\nb\n", "\nc\n"), "printed, otherwise than the document says:\nb\n"),
        (TRUE.replace("one\n…", "one"), "printed, otherwise"),
        (TRUE.replace("# exit status 1", ""), "ended with status 1, not 0"),
        ("```console\n$ true  # exit status 1\n```\n", "ended with status 0, not 1"),
        ("```console\n$ no-such-command\n```\n", "ended with status 127"),
        ("```console\n$ codex-replay cassette shw x\n```\n", "No such command"),
        ("```console\n$ exit 0\n$ echo\n```\n", "did not come to its end"),
        ("```console\n$ sleep 60 &\n```\n", "1 process(es) are left running"),
        ("```\n$ echo\n```\n", "a block of language ''"),
        ("```sh\necho\n```\n", "a block of language 'sh'"),
        ("```console\necho\n```\n", "a session begins with `$ `"),
        ("<!-- run: no -->\n```console\n$ echo\n```\n", "needs a reason"),
        ("<!-- run: never (of no use here) -->\n```console\n$ echo\n```\n", "`run: never` is not known"),
        ('```json\n{"a": }\n```\n', "it is no json"),
        ("```python\ndef f(:\n```\n", "it is no python"),
        ("```yaml\na: b: c\n```\n", "it is no YAML"),
        ("- a list\n\n  ```console\n  $ echo\n  ```\n", "a fence that is indented"),
        ("Run\n\n    pytest suites\n", "a command in an indented block"),
    ],
)
def test_a_document_that_lies_is_found_out(text: str, said: str, tmp_path: Path) -> None:
    assert said in "\n".join(problems(text, tmp_path))


def test_a_file_of_a_document_is_there_for_its_commands(tmp_path: Path) -> None:
    text = '<!-- file: a/b.json -->\n```json\n["it\'s"]\n```\n```console\n$ cat a/b.json\n["it\'s"]\n```\n'
    assert problems(text, tmp_path) == []


def test_a_session_is_taken_apart() -> None:
    block = Block(1, "console", "$ a \\\n> b\nout\n\n$ c  # wrong, exit status 3\n", {})
    assert block.commands() == [Command("a \\\nb", ["out"], 0), Command("c  # wrong, exit status 3", None, 3)]


@pytest.mark.parametrize(
    ("shown", "printed", "fit"),
    [
        (["a 1.2 s"], ["a  13.75 s"], True),
        (["Codex 0.92.0"], ["Codex 0.93.0"], False),
        (["a", "…", "z"], ["a", "z"], True),
        (["a", "…", "z"], ["a", "b", "c"], False),
        (["a … z"], ["a b z"], True),
        (["3 passed"], ["4 passed"], False),
        (["http://127.0.0.1:1/x"], ["http://127.0.0.1:2/x"], True),
    ],
)
def test_what_fits(shown: list[str], printed: list[str], fit: bool) -> None:
    assert fits(shown, printed) is fit


@pytest.mark.parametrize(
    "text",
    [
        "`codex-replay fly`",
        "`codex-replay cassette lint --loud`",
        "`make coffee`",
        "`pytest suites --no-such`",
        "<!-- run: no (it costs money) -->\n```console\n$ codex-replay record --no-such\n```\n",
    ],
)
def test_a_command_that_is_named_and_does_not_exist(text: str) -> None:
    assert len(unknown(Document("d.md", text))) == 1
    assert unknown(Document("d.md", "`codex-replay cassette lint|show --json`, `make test`, `pytest suites --proxy x`")) == []


def test_links_that_lead_nowhere(tmp_path: Path) -> None:
    assert broken_links("[a](no.md) [b](https://x) see docs/nowhere.md", tmp_path) == ["no.md", "docs/nowhere.md"]


def test_the_check_of_a_built_site_fails_on_what_it_loads(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://fonts.example/a.woff) }")
    done = subprocess.run(
        [sys.executable, "tests/project/documents.py", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "a.css: url(https://fonts.example/a.woff)\n")
