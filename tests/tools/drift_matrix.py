"""`make drift-matrix`: write pages about the drift between many Codex versions to reports/drift/, from the versions' schema
bundles.

Strategy: first, the schema bundle of each version is made and kept. Only one Codex binary is installed at a time, and is removed
when its bundle exists. When all bundles exist, all pages are written from the bundles. An interrupted `make drift-matrix` can be
continued, because finished bundles are kept. If all bundles exist, `make drift-matrix` needs no npm and no network, and writes
the same bytes each time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import pairwise
from typing import Any

import click

from codex_replay.cli.drift import pages
from codex_replay.cli.io.console import Unable, console, sentences
from codex_replay.protocol.drift.compare import compare
from codex_replay.protocol.drift.findings import counts
from codex_replay.protocol.drift.report import as_json, encode
from codex_replay.protocol.schema.bundle import Bundle, BundleError
from codex_replay.protocol.versions import STEPS
from codex_replay.shell.codex.bundles import bundle_of, experimental_of
from codex_replay.shell.files.atomic import write_whole

Matrix = dict[str, Any]


@click.command()
@click.option("--out", metavar="DIR", default="reports/drift", show_default=True, help="The folder to write to.")
@click.option("--versions", metavar="V,V", default=",".join(STEPS), help="Other versions, oldest first.")
@sentences
def command(out: str, versions: str) -> None:
    """Write the drift between each version and the next, and an index with the number of breaking changes between any two
    versions.
    """
    named = [version for version in versions.split(",") if version]
    if len(named) < 2 or len(set(named)) < len(named):
        raise click.UsageError("name at least two versions, each once, oldest first: --versions " + ",".join(STEPS[:2]))
    try:
        files = dict(written(_bundles(named)))
    except BundleError as error:
        raise Unable(f"{error} Finished bundles and pages are kept; rerun the command to continue.") from None
    for name, text in files.items():
        write_whole(os.path.join(out, name), text.encode())
    for name in sorted(set(os.listdir(out)) - files.keys()):
        if name.startswith("0.") and name.endswith((".json", ".md")):
            os.unlink(os.path.join(out, name))  # a step between versions that are no longer neighbours
    click.echo(f"{out}: {len(files)} files on {len(named)} versions.")


def _bundles(versions: Sequence[str]) -> list[Bundle]:
    """Return the schema bundle of each version; make missing bundles, and show a progress bar on a terminal."""
    if not sys.stderr.isatty():
        return [bundle_of(version, _once()) for version in versions]
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(20), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console(sys.stderr), transient=True) as progress:
        task = progress.add_task("", total=len(versions))
        found = []
        for version in versions:
            found.append(bundle_of(version, lambda text: progress.update(task, description=text)))
            progress.update(task, advance=1, description=f"Codex {version}")
        return found


def _once() -> Callable[[str], None]:
    """Return a function that writes each line of text to stderr only once."""
    last: list[str] = []

    def step(text: str) -> None:
        if last != [text]:
            last[:] = [text]
            click.echo(text, err=True)

    return step


def step(old: Bundle, new: Bundle) -> dict[str, Any]:
    """Return the drift report on two versions.

    Raises `BundleError` if a required experimental bundle is not available.
    """
    return as_json(compare(old, new, _experimental_of))


def _experimental_of(plain: Bundle) -> tuple[Bundle | None, str]:
    if plain not in _BESIDE:
        found, why = experimental_of(plain.version, plain, _once())
        if why:
            raise BundleError(why)
        _BESIDE[plain] = found
    return _BESIDE[plain], ""


#: The experimental bundle next to each plain one, read once.
_BESIDE: dict[Bundle, Bundle | None] = {}


def written(bundles: Sequence[Bundle]) -> Iterator[tuple[str, str]]:
    """Yield (file name, text) of every file of the matrix."""
    reports = {(old.version, new.version): step(old, new) for i, old in enumerate(bundles) for new in bundles[i + 1 :]}
    names = [bundle.version for bundle in bundles]
    for pair in pairwise(names):
        yield f"{_step(*pair)}.json", encode(reports[pair])
        yield f"{_step(*pair)}.md", pages.markdown(reports[pair])
    matrix = {
        "matrix": 1,
        "versions": {bundle.version: counts(bundle) for bundle in bundles},
        "breaking": {
            old: {new: reports[old, new]["counts"]["breaking"] for new in names if (old, new) in reports} for old in names[:-1]
        },
        "additive": {
            old: {new: reports[old, new]["counts"]["additive"] for new in names if (old, new) in reports} for old in names[:-1]
        },
    }
    yield "index.json", encode(matrix)
    yield "index.md", markdown(matrix)
    yield "index.html", html(matrix)


def _step(old: str, new: str) -> str:
    return f"{old}-{new}"


def _steps(matrix: Matrix) -> list[tuple[str, str]]:
    return list(pairwise(matrix["versions"]))


_ABOUT = "Made by `make drift-matrix` from the schema bundles that each version generates. docs/drift.md explains it."
_BETWEEN = "Breaking changes from the version of the row to the version of the column."


def markdown(matrix: Matrix) -> str:
    """Return the index as Markdown: the number of methods in each version, links to the reports, and the number of breaking
    changes between any two versions.
    """
    names = list(matrix["versions"])
    lines = ["# Drift of the app-server protocol", "", _ABOUT, "", "## The methods of each version", ""]
    lines += [f"| version | {' | '.join(pages.COUNTS.values())} |", "|---|" + "---:|" * len(pages.COUNTS)]
    for name, has in matrix["versions"].items():
        lines.append(f"| {name} | {' | '.join(str(has[key]) for key in pages.COUNTS)} |")
    lines += ["", "## Each step", "", "| step | breaking | additive |", "|---|---:|---:|"]
    for old, new in _steps(matrix):
        lines.append(
            f"| [{old} to {new}]({_step(old, new)}.md) | {matrix['breaking'][old][new]} | {matrix['additive'][old][new]} |"
        )
    lines += [
        "",
        "## Between any two",
        "",
        _BETWEEN,
        "",
        f"| from | {' | '.join(names[1:])} |",
        "|---|" + "---:|" * (len(names) - 1),
    ]
    for old in names[:-1]:
        lines.append(f"| {old} | {' | '.join(str(matrix['breaking'][old].get(new, '')) for new in names[1:])} |")
    return "\n".join(lines) + "\n"


def html(matrix: Matrix) -> str:
    """Return the index as one HTML page; a darker cell means more breaking changes."""
    names = list(matrix["versions"])
    most = max(number for row in matrix["breaking"].values() for number in row.values()) or 1
    body = [
        "<h1>Drift of the app-server protocol</h1>",
        f"<p>{escape(_ABOUT.replace('`', ''))}</p>",
        "<h2>The methods of each version</h2>",
    ]
    rows = [[name, *(str(has[key]) for key in pages.COUNTS)] for name, has in matrix["versions"].items()]
    body += _grid(["version", *pages.COUNTS.values()], rows)
    body.append("<h2>Each step</h2>")
    rows = [
        [_link(old, new), str(matrix["breaking"][old][new]), str(matrix["additive"][old][new])] for old, new in _steps(matrix)
    ]
    body += _grid(["step", "breaking", "additive"], rows)
    body += ["<h2>Between any two</h2>", f"<p>{_BETWEEN}</p>"]
    body.append(
        '<div class="wide"><table><thead><tr><th>from</th>'
        + "".join(f"<th>{name}</th>" for name in names[1:])
        + "</tr></thead><tbody>"
    )
    for old in names[:-1]:
        cells = "".join(_cell(matrix["breaking"][old].get(new), most) for new in names[1:])
        body.append(f"<tr><td>{old}</td>{cells}</tr>")
    body.append("</tbody></table></div>")
    return _page("Drift of the app-server protocol", "\n".join(body) + "\n")


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield (
        '<div class="wide"><table><thead><tr>'
        + "".join(f"<th>{escape(name.replace('`', ''))}</th>" for name in head)
        + "</tr></thead><tbody>"
    )
    for first, *rest in rows:
        yield f"<tr><td>{first}</td>" + "".join(f'<td class="number">{cell}</td>' for cell in rest) + "</tr>"
    yield "</tbody></table></div>"


def _link(old: str, new: str) -> str:
    return f'<a href="{_step(old, new)}.md">{old} to {new}</a>'


def _cell(number: int | None, most: int) -> str:
    if number is None:
        return "<td></td>"
    return f'<td class="number" style="background: rgb(204 34 34 / {number * 45 // most}%)">{number}</td>'


_STYLE = """
:root { color-scheme: light dark; --line: #8884; --bad: #c22; --good: #185; }
@media (prefers-color-scheme: dark) { :root { --bad: #f77; --good: #6c9; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 75rem; padding: 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .6rem; text-align: left; vertical-align: top; }
td { overflow-wrap: anywhere; }
th { position: sticky; top: 0; background: Canvas; }
code, .small { font-size: 13px; }
.number { text-align: right; }
.breaking { color: var(--bad); }
.additive { color: var(--good); }
.small { opacity: .8; }
input { font: inherit; padding: .3rem .6rem; width: 20rem; max-width: 100%; }
.wide { overflow-x: auto; }
"""


def _page(title: str, body: str) -> str:
    """Return one self-contained HTML page without a script.

    The HTML page loads no other files, and is readable on a phone and in dark mode.
    """
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{escape(title)}</title>'
    top = f'<!doctype html>\n<html lang="en"><head>{head}<style>{_STYLE}</style></head>'
    return f"{top}\n<body>\n{body}</body></html>\n"


if __name__ == "__main__":
    command()
