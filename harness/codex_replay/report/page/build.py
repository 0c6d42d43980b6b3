"""Write one HTML file that shows a whole report or one cassette. The HTML file needs no network, no framework and no build step.

The HTML file consists of a skeleton (`page/page.html`), a style sheet and a script. `SCRIPTS` lists the files that are
joined to the script. The data are text in the HTML file, not a script: one JSON text with the lists, and many compressed chunks
(JSON, deflate, base64). Each chunk has `BLOCK` cases or one trace. The script decodes a chunk only when the user opens it, so a
page with thousands of cases loads immediately. The page has the traces of all failed, known and skipped cases, and the traces of
`PASSED` passed cases.

All texts in frames and messages are untrusted. JSON is written in ASCII without `<`, `>` and `&`, so that no data can close
its HTML element. The script shows data only as text nodes, never as markup. The content security policy of the page allows
only its own script and style sheet (by their hashes). The content security policy forbids connections, and markup that is
made from strings (trusted types).

If the data are equal, the bytes of the page are equal.
"""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import os
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from string import Template
from typing import IO, Any

from codex_replay.core.text.truncate import truncate
from codex_replay.report.data import Case, Report, Trace
from codex_replay.report.group_failures import LONGEST, groups
from codex_replay.report.traces import TraceText, as_text, finite
from codex_replay.shell.files.atomic import replacing

SCRIPTS = (
    *("dom.js", "visible.js", "json.js", "diff.js", "data.js", "lazy.js", "compare.js", "sequence.js", "case.js"),
    *("tree.js", "findings.js", "drift.js", "behaviour.js", "overview.js", "list.js", "keys.js", "main.js"),
)
#: What a list shows of a message; all of it is in the case's chunk.
GLANCE = 240
#: How many chunks may wait for being packed, or for being written.
AHEAD = 16
#: How many cases share a chunk: alone, a case is five times as long.
BLOCK = 50
#: How many passed cases have their traces in the page: of thousands they would be most of the file, and few are ever read.
PASSED = 200
#: Of zlib: half the time of its usual level, which the end of a run waits for, for a page that is a tenth larger.
LEVEL = 3


def write_html(report: Report, traces: Iterable[Trace | TraceText], path: Path | str, *, full: bool = False) -> Path:
    """Write the page for a whole report; the trace of a case that is not in the report is omitted.

    Raises OSError if the page cannot be written.

    `traces` may come in any order, and are processed one at a time; if two traces have the same key, the first one counts.
    With `full`, the page has the traces of all passed cases.
    """
    cases = report["cases"]
    passed = len(cases) if full else PASSED
    places = {key: i for i, key in enumerate(_with_traces(cases, passed))}
    specs: dict[tuple[Any, ...], int] = {}
    data: dict[str, Any] = {
        **{key: value for key, value in report.items() if key != "cases"},
        "mode": "report",
        "block": BLOCK,
        "cases": [_light(case, places, specs) for case in cases],
    }
    data["specs"] = list(specs)
    if message := groups(cases):
        data["alike"] = [truncate(line, LONGEST) for line, _ in message]
        for number, (_, indexes) in enumerate(message):
            for i in indexes:
                data["cases"][i]["alike"] = number
    chunks: Iterable[tuple[str, bytes]] = _chunks(cases, traces, places)
    if "drift" in report:
        data["drift"] = _glance(report["drift"])
        chunks = chain([("d0", _dumps(report["drift"]).encode("ascii"))], chunks)
    return _write(data, chunks, f"codex-replay: {report['verdict']}, {len(cases)} cases", Path(path))


def write_cassette_html(trace: Trace, about: Mapping[str, str], out: Path | IO[str]) -> None:
    """Write the page for one cassette to a file or a stream; `about` has the values that describe the cassette, by name.

    Raises OSError.
    """
    data = {"mode": "cassette", "about": dict(about), "cases": [{"id": trace["case"], "story": 0}]}
    chunks = [("s0", as_text(trace).text)]
    title = f"codex-replay: {trace['case']}"
    if isinstance(out, Path):
        _write(data, chunks, title, out)
    else:
        _fill(out, data, chunks, title)


def drift_html(found: Mapping[str, Any]) -> str:
    """Return the page for one drift, of schemas or of behaviour, made from the output of `drift --json`."""
    out = io.StringIO()
    title = f"codex-replay: drift from {found['from']} to {found['to']}"
    data = {"mode": "drift", "drift": _glance(found), "cases": []}
    _fill(out, data, [("d0", _dumps(found).encode("ascii"))], title)
    return out.getvalue()


def _glance(drift: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data for the one-line summary of a drift report. The long lists of the drift report are in a separate chunk."""
    return {key: drift[key] for key in ("drift", "behaviour", "from", "to", "counts", "totals") if key in drift}


def _with_traces(cases: Iterable[Case], passed: int) -> list[str]:
    """Return the keys of the traces that the page contains, each once; cases that did not pass come first.

    At most `passed` passed cases have a trace in the page: the first case of each module, and then other cases in order.
    """
    others: dict[str, None] = {}
    firsts: dict[tuple[str, str], str] = {}
    rest: dict[str, None] = {}
    for case in cases:
        key = case["story"]
        if key is None:
            continue
        if case["outcome"] != "passed":
            others[key] = None
        elif firsts.setdefault((case["suite"], case["module"]), key) != key:
            rest[key] = None
    chosen = [key for key in dict.fromkeys([*firsts.values(), *rest]) if key not in others]
    return [*others, *chosen[:passed]]


def _light(case: Case, places: Mapping[str, int], specs: dict[tuple[Any, ...], int]) -> dict[str, Any]:
    """Return the values of a case for the lists; `specs` gives a number to each value that several cases share."""
    spec = case["spec"]
    light: dict[str, Any] = {key: case[key] for key in ("id", "suite", "module", "title", "outcome", "seconds")}
    if case["message"]:
        light["message"] = case["message"][:GLANCE]
    if spec is not None:
        light["check"] = spec["check"]
        light["spec"] = specs.setdefault((spec["document"], spec["section"]), len(specs))
    if case["story"] is not None:
        light["story"] = places.get(case["story"], -1)
    if "run" in case:
        light["run"] = case["run"]
    return light


def _chunks(cases: list[Case], traces: Iterable[Trace | TraceText], places: Mapping[str, int]) -> Iterator[tuple[str, bytes]]:
    """Yield the id of an HTML element and its JSON, for every block of cases and then for every trace in the page."""
    for i in range(0, len(cases), BLOCK):
        yield f"c{i // BLOCK}", _dumps(cases[i : i + BLOCK]).encode("ascii")
    seen: set[str] = set()
    for trace in map(as_text, traces):
        if trace.key in places and trace.key not in seen:
            seen.add(trace.key)
            yield f"s{places[trace.key]}", trace.text


def _packed(chunks: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, str]]:
    """Yield (id, base64 of the compressed text) for each chunk, in order; zlib compresses in threads, to use all cores."""
    waiting: deque[tuple[str, Future[bytes]]] = deque()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for name, text in chunks:
            waiting.append((name, threads.submit(zlib.compress, text, LEVEL)))
            if len(waiting) > AHEAD:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())


def _finished(name: str, packed: Future[bytes]) -> tuple[str, str]:
    return name, base64.b64encode(packed.result()).decode()


def _write(data: Mapping[str, Any], chunks: Iterable[tuple[str, bytes]], title: str, path: Path) -> Path:
    with replacing(path) as draft, open(draft, "w", encoding="ascii", newline="\n") as out:
        _fill(out, data, chunks, title)
    return path


def _fill(out: IO[str], data: Mapping[str, Any], chunks: Iterable[tuple[str, bytes]], title: str) -> None:
    skeleton, style, script = _parts()
    head, tail = skeleton.split("<!--chunks-->\n")
    values = {
        "policy": html.escape(_policy(style, script)),
        "title": _markup(title),
        "style": style,
        "script": script,
        "data": _json(data),
    }
    out.write(Template(head).substitute(values))
    for name, packed in _packed(chunks):
        out.write(f'<script type="application/octet-stream" id="{name}">{packed}</script>\n')
    out.write(tail)


def _policy(style: str, script: str) -> str:
    """Return the content security policy of the page.

    The policy allows only the page's own script and style sheet; connections, forms and markup from strings are forbidden.
    """
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _parts() -> tuple[str, str, str]:
    """Return the skeleton, the style sheet and the script, all in ASCII, so that their bytes are equal in every encoding."""
    folder = resources.files("codex_replay.report") / "page"
    script = "".join((folder / name).read_text("ascii") for name in SCRIPTS)
    return (
        (folder / "page.html").read_text("ascii"),
        (folder / "page.css").read_text("ascii"),
        f'(() => {{\n"use strict";\n{script}}})();\n',
    )


def _json(value: Any) -> str:
    """Return JSON for an HTML script element, without characters that have a meaning for an HTML parser."""
    return _dumps(value).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _dumps(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:  # JSON has no form for these numbers, and an unreadable page is useless
        return json.dumps(finite(value), separators=(",", ":"), allow_nan=False)


def _markup(text: str) -> str:
    """Return an untrusted text for the skeleton: in ASCII, with invisible characters replaced by visible ones."""
    seen = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    return html.escape(seen).encode("ascii", "xmlcharrefreplace").decode()
