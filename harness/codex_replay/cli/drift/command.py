"""`codex-replay drift FROM TO`: list the changes of the protocol between two Codex versions, and the clients that they break."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import os
import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from codex_replay.cli.drift import pages
from codex_replay.cli.io.console import PLAIN_WIDTH, Place, Unable, aside, coloured, console, sentences
from codex_replay.cli.io.stdout import coloured_line, for_programs
from codex_replay.core.text.escape import escape
from codex_replay.protocol.drift.experimental import declares
from codex_replay.protocol.schema.bundle import Bundle, BundleError
from codex_replay.shell.codex.bundles import bundle_of, experimental_of, load_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from codex_replay.core.cassette.frames import Frame
    from codex_replay.protocol.drift.findings import Drift

#: How many of the changes that break are shown without --all.
MOST = 10
#: Why a recording of the Responses backend is hit by nothing here.
_OTHER_SEAM = "a schema bundle does not describe the Responses backend. `drift --behaviour` compares the requests to it."


@click.command()
@click.argument("from_", metavar="FROM")
@click.argument("to", metavar="TO")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")
@click.option("--markdown", metavar="FILE", type=Place(dir_okay=False), help="Also write the report as Markdown.")
@click.option("--html", metavar="FILE", type=Place(dir_okay=False), help="Also write the report as one HTML file.")
@click.option("--cassettes", metavar="DIR", type=Place(), help="Show only the changes that affect these cassettes.")
@click.option(
    "--experimental",
    metavar="BUNDLE",
    type=Place(exists=True),
    help="The experimental bundle for TO, if TO is your own bundle (made by generate-json-schema --experimental).",
)
@click.option(
    "--experimental-from",
    metavar="BUNDLE",
    type=Place(exists=True),
    help="The experimental bundle for FROM, if FROM is your own bundle.",
)
@click.option("--all", "everything", is_flag=True, help="Show every change, also additive changes.")
@click.option(
    "--ignore",
    multiple=True,
    metavar="NAME",
    help="Ignore the changes in methods (such as codex/event/*), or the changes of a rule (such as enum-opened). Repeatable.",
)
@click.option(
    "--reads",
    metavar="FILE|CASSETTES",
    type=Place(exists=True),
    help="Count only changes in messages that your client reads. Give cassettes of your client, or a file with one method, "
    "and optional fields, per line.",
)
@click.option(
    "--sends",
    metavar="FILE|CASSETTES",
    type=Place(exists=True),
    help="Count only changes in messages that your client sends. Give the same kind of file or cassettes as for --reads.",
)
@click.option("--behaviour", is_flag=True, help="Run the cases of the suite on both real Codex binaries, and compare the frames.")
@click.option("-k", "chosen", metavar="EXPRESSION", help="With --behaviour: run only the cases that match, like pytest's -k.")
@sentences
def command(
    from_: str,
    to: str,
    as_json: bool,
    markdown: str | None,
    html: str | None,
    cassettes: str | None,
    experimental: str | None,
    experimental_from: str | None,
    everything: bool,
    ignore: tuple[str, ...],
    reads: str | None,
    sends: str | None,
    behaviour: bool,
    chosen: str | None,
) -> None:
    """Compare the JSON schemas of FROM and TO; each is a Codex version, or your own schema bundle file.

    If codex-replay has no schema bundle of a version yet, the Codex binary of the version generates the bundle, which is
    then kept. If necessary, codex-replay first installs the Codex binary. With --cassettes, list only the schema changes
    that affect the recordings in CASSETTES. The command prints the verdict and the ten changes with the most effects; --all
    shows every change.

    Exit status: 0 if no change breaks a client, 1 if a change breaks a client, 2 if the comparison failed.
    """
    if behaviour:
        if experimental is not None or experimental_from is not None:
            named = "--experimental" if experimental is not None else "--experimental-from"
            raise Unable(f"{named} names a bundle, but --behaviour does not compare bundles: remove one of the two options.")
        if everything or ignore or reads is not None or sends is not None:
            raise Unable(
                "--all, --ignore, --reads and --sends are only for the comparison of schemas. Remove them, or remove --behaviour."
            )
        module = importlib.import_module("codex_replay.cli.drift.behaviour")
        more = {"markdown": markdown, "html": html, "cassettes": cassettes}
        raise SystemExit(module.run(from_, to, as_json, **more, chosen=chosen or ""))
    if chosen is not None:
        raise Unable("-k selects cases, but only --behaviour runs cases. Add --behaviour, or remove -k.")
    from codex_replay.protocol.drift.compare import compare
    from codex_replay.protocol.drift.reads import BadPattern, only_used, without_ignored
    from codex_replay.protocol.drift.report import as_json as data
    from codex_replay.protocol.drift.report import encode

    try:
        old, new = _bundle(from_), _bundle(to)
        sides = {id(old): (from_, experimental_from, "--experimental-from"), id(new): (to, experimental, "--experimental")}
        experimental_bundles: list[Bundle | None] = []

        def experimental_bundle(plain: Bundle) -> tuple[Bundle | None, str]:
            bundle, why = _experimental(plain, *sides[id(plain)])
            experimental_bundles.append(bundle)
            return bundle, why

        drift = compare(old, new, experimental_bundle)
        found = len(drift.findings)
        drift = without_ignored(drift, ignore)
        for option, path, sender in (("--reads", reads, "server"), ("--sends", sends, "client")):
            if path is not None:
                wanted = _used_methods(option, path)
                _warn_of_unknown(option, path, wanted, [old, new, *filter(None, experimental_bundles)])
                drift = only_used(drift, sender, wanted)
    except BadPattern as error:
        raise Unable(str(error)) from None
    except BundleError as error:
        raise Unable(str(error)) from None
    except RecursionError:
        raise Unable(f"The schemas of {from_} or {to} are nested too deeply to be compared.") from None
    report = data(drift) if cassettes is None else data(drift, _used(drift, cassettes), cassettes)
    if ignore or reads is not None or sends is not None:
        report["ignored"] = found - len(drift.findings)
    pages.write(markdown, pages.markdown, report)
    pages.write(html, pages.html_page, report)
    if as_json:
        for_programs(encode(report).removesuffix("\n"))
    else:
        _show(report, everything)
    raise SystemExit(1 if pages.breaks(report) else 0)


def _bundle(named: str) -> Bundle:
    with _progress() as step:
        return bundle_of(named, step)


def _experimental(plain: Bundle, named: str, own: str | None, option: str) -> tuple[Bundle | None, str]:
    """Return the experimental bundle of a version and None; if the bundle is missing, return None and the reason."""
    if own is not None:
        return load_own(own), ""
    with _progress() as step:
        found, why = experimental_of(named, plain, step)
    if found is None and not why and declares(plain):
        why = f"{named} is your own bundle, and its experimental bundle is missing; name it with {option}."
    return found, why


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Report the progress of `drift` on stderr: on a terminal as one line that changes, otherwise as one line for each step."""
    with contextlib.ExitStack() as stack:
        shown: list[Any] = []

        def step(text: str) -> None:
            if not sys.stderr.isatty():
                if shown[-1:] != [text]:
                    shown[:] = [text]
                    click.echo(text, err=True)
            elif shown:
                shown[0].update(text)
            else:
                shown.append(stack.enter_context(console(sys.stderr).status(text)))

        yield step


def _is_list(path: str) -> bool:
    """Return True if `--reads` or `--sends` names a list of methods, False if it names cassettes."""
    return os.path.isfile(path) and not path.endswith(".ndjson")


def _used_methods(option: str, path: str) -> list[str]:
    """Return the methods and fields that a client reads or sends: the lines of a file, or the methods in its recordings."""
    from codex_replay.protocol.drift.reads import used_in

    if _is_list(path):
        try:
            with open(path, encoding="utf-8") as file:
                names = [name for line in file if (name := line.partition("#")[0].strip())]
        except UnicodeDecodeError:
            raise Unable(f"{option} {path}: the file is not UTF-8; give a text file with one method per line.") from None
        if not names:
            raise Unable(f"{option} {path}: the file names no method; write one per line, such as turn/completed or item/*.")
        return names
    found: set[str] = set()
    for name in _cassettes(path):
        found |= used_in((frame.sender, frame.value) for frame in _frames(path, name))
    if not found:
        raise Unable(
            f"{option} {path}: its cassettes have no messages of an app-server, so they do not show which messages a client uses."
        )
    return sorted(found)


def _warn_of_unknown(option: str, path: str, wanted: list[str], bundles: list[Bundle]) -> None:
    """Report on stderr each line of `--reads FILE` or `--sends FILE` that matches no method.

    A line that matches no method is not an error, because one list may serve several versions.
    """
    from codex_replay.protocol.drift.reads import methods_of, misspelt, near_misses

    if not _is_list(path):
        return
    for name, near in near_misses(wanted, methods_of(bundles)):
        aside(
            f"{option} {path}: {name} matches no method of the compared bundles, so it has no effect."
            + (f" Did you mean {near}?" if near else "")
        )
    for field in misspelt(wanted, bundles):
        aside(
            f"{option} {path}: {field} is not the path of a field of the compared bundles, so it has no effect. "
            "The path of a field begins with $.params or $.result."
        )


def _used(drift: Drift, folder: str) -> dict[str, list[int]]:
    """Return for each cassette, by name, the findings that affect it; `folder` is a folder of cassettes, or one cassette."""
    from codex_replay.protocol.drift.users import Usage

    names = _cassettes(folder)
    if not names:
        raise Unable(f"There is no cassette (*.ndjson) in {folder}: name the folder of your recordings.")
    usage = Usage(drift)
    used, silent = {}, 0
    for name in _tracked(names):
        frames = _frames(folder, name)
        first = list(itertools.islice(frames, 1))
        silent += not first
        messages = ((frame.sender, frame.value) for frame in itertools.chain(first, frames))
        used[os.path.splitext(name or os.path.basename(folder))[0]] = usage.hits(messages)  # type: ignore[arg-type]
    if silent == len(names):
        raise Unable(f"No cassette in {folder} has frames of an app-server, so none can be affected: {_OTHER_SEAM}")
    if silent:
        aside(f"{silent} of the {len(names)} cassettes in {folder} have no frames of an app-server: {_OTHER_SEAM}")
    return used


def _frames(folder: str, name: str) -> Iterator[Frame]:
    """Yield the whole app-server frames of a cassette; report on stderr if the recording is truncated."""
    from codex_replay.shell.cassettes.file import CassetteReader

    with contextlib.closing(CassetteReader(os.path.join(folder, name) if name else folder)) as cassette:
        yield from (frame for frame in cassette if frame.seam == "rpc" and frame.whole)
        if cassette.truncated:
            aside(cassette.truncated)


def _cassettes(folder: str) -> list[str]:
    if os.path.isfile(folder):
        return [""]
    if not os.path.isdir(folder):
        raise Unable(f"There is no folder {folder}: name the folder of your cassettes.")
    from codex_replay.shell.cassettes.file import cassettes_in

    found, left_out = cassettes_in(folder)
    for text in left_out:
        aside(text)
    return sorted(os.path.relpath(path, folder).replace(os.sep, "/") for path in found)


def _tracked(names: list[str]) -> Iterator[str]:
    """Yield each of `names`, and show a progress bar on a terminal."""
    if not sys.stderr.isatty():
        yield from names
        return
    from rich.progress import track

    yield from track(names, "Reading cassettes", console=console(sys.stderr), transient=True)


def _show(report: dict[str, Any], everything: bool) -> None:
    """Print the verdict, the counts and the changes with the most effects.

    If `everything` is True, print all changes, and the verdict again at the end.
    """
    from codex_replay.cli.drift.table import ASCII, table

    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else PLAIN_WIDTH
    lines = [escape(pages.verdict(report))]
    counts = [(name.replace("`", ""), str(old), str(new)) for name, old, new in pages.totals(report)]
    lines += table(("", escape(report["from"]), escape(report["to"])), counts, wide)
    for cls, style in (("breaking", "31"), ("additive", "32")) if everything else (("breaking", "31"),):
        rows = pages.rows(report, cls)
        shown = rows if everything else pages.worst(report, MOST)
        if shown:
            last = "who is hit" if cls == "breaking" else "who sends it"
            cells = [[escape(cell) for cell in _cells(row, cls)] for row in shown]
            title = cls if len(shown) == len(rows) else f"{cls}: the {len(shown)} that break most"
            lines += table(("method", "where", "change", last), cells, wide, title, style if coloured() else "")
    if not str(sys.stdout.encoding).lower().startswith("utf"):
        lines = [line.translate(ASCII) for line in lines]
    lines += map(escape, report["uncompared"])
    lines.append(escape(("" if everything else pages.left_out(report, MOST)) or pages.verdict(report)))
    coloured_line("\n".join(lines))


def _cells(row: pages.Row, cls: str) -> tuple[str, ...]:
    more = f" (+{row.more})" if row.more else ""
    return row.method, row.path + more, row.change, row.hit if cls == "breaking" else _sender(row)


def _sender(row: pages.Row) -> str:
    client = row.kind.startswith("client") != row.path.startswith("$.result")
    return "client or server" if row.kind == "envelope" else "client" if client else "server"
