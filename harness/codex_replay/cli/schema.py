"""`codex-replay schema`: compare the packaged JSON schemas with the real Codex, generate them again, or write a readable
reference.
"""

from __future__ import annotations

import json
import os
import tempfile
from typing import TYPE_CHECKING

import click

from codex_replay.cli.io.console import Place, Unable, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.protocol import data_tables, versions
from codex_replay.protocol.schema import bundle
from codex_replay.shell.codex import schema_gen
from codex_replay.shell.codex.bundles import load_own
from codex_replay.shell.codex.cache import find_installed
from codex_replay.shell.codex.errors import CodexInstallError
from codex_replay.shell.files import version_data
from codex_replay.shell.files.archive import packed
from codex_replay.shell.files.bundle_files import load_file
from codex_replay.shell.files.folder import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@click.group(name="schema")
def group() -> None:
    """Compare, regenerate or read the JSON schemas of a Codex version."""


def _codex(given: str | None, version: str) -> str:
    """Return the path of the Codex binary for `version`: `given`, otherwise the installed binary.

    Raise a usage error if there is no Codex binary.
    """
    if given is not None:
        return given
    try:
        found = find_installed(version)
    except CodexInstallError as error:
        raise click.UsageError(str(error)) from None
    if found is not None:
        return str(found)
    raise click.UsageError(
        f"No Codex {version} is installed. Run `codex-replay codex install {version}` or name a binary with --codex PATH."
    )


def _generate(codex: str, out: str) -> None:
    """Generate the schema files into the folder `out`; if Codex fails, end the command with the error message of Codex."""
    try:
        schema_gen.generate([codex, "app-server"], out)
    except schema_gen.GenerateError as error:
        raise Unable(str(error)) from None


_CODEX = click.option("--codex", metavar="PATH", help="The Codex binary to use (default: the installed binary of that version).")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object.")


@group.command()
@click.argument("version", default=versions.DEFAULT)
@_CODEX
@_JSON
@sentences
def check(version: str, codex: str | None, as_json: bool) -> None:
    """Regenerate the schema files of VERSION with the real binary and compare them byte for byte.

    Exit status: 0 if all files are identical, 1 if a file differs, 2 if the comparison failed.
    """
    try:
        vendored = list(data_tables.schema(version).items())
    except data_tables.MissingTable as error:
        raise click.UsageError(str(error)) from None
    with tempfile.TemporaryDirectory(prefix="codex-schema-") as out:
        _generate(_codex(codex, version), out)
        generated = list(Folder(out).items())
    differences = schema_gen.verify_manifest(version)
    differences += schema_gen.compare(vendored, generated, ("vendored", "generated"))
    if as_json:
        outcome = {
            "version": version,
            "files": len(vendored),
            "identical": not differences,
            "differences": [{"file": d.name, "what": d.what} for d in differences],
        }
        for_programs(json.dumps(outcome, indent=2))
    else:
        for difference in differences:
            click.echo(f"{difference.name}: {difference.what}")
        if differences:
            click.echo(f"Codex {version}: the packaged schemas differ from those that the binary generates.")
        else:
            click.echo(f"Codex {version}: {len(vendored)} files, all identical to those that the binary generates.")
    if differences:
        raise SystemExit(1)


@group.command()
@click.argument("version")
@click.option("--out", type=Place(), help="The directory to write to (default: the packaged folder of VERSION).")
@_CODEX
@_JSON
@sentences
def regen(version: str, out: str | None, codex: str | None, as_json: bool) -> None:
    """Write the schema files that the binary of VERSION generates, and a list of their SHA-256 sums.

    Without --out, the generated files replace the packaged files; a packaged file that the binary no longer generates is
    removed.
    """
    into = out or packed(version_data.path_of(f"{version}/schema"))
    binary = _codex(codex, version)
    with tempfile.TemporaryDirectory(prefix="codex-schema-") as fresh:
        _generate(binary, fresh)
        generated = dict(Folder(fresh))
    before = dict(Folder(into))
    foreign = [name for name in before if not name.endswith(".json")]
    if out and foreign:
        raise click.UsageError(f"{out} has files that are not schemas ({foreign[0]}); name an empty directory.")
    _write(into, generated, before)
    if out is None:
        with open(version_data.path_of(f"{version}/schema.sha256"), "w", encoding="ascii", newline="\n") as manifest:
            manifest.write(schema_gen.manifest(generated))
    changed = [d.name for d in schema_gen.compare(before.items(), generated.items(), ("before", "now"))]
    if as_json:
        for_programs(json.dumps({"version": version, "out": into, "files": len(generated), "changed": changed}, indent=2))
    else:
        click.echo(f"Codex {version}: {len(generated)} files in {into}, {len(changed)} of them changed.")


@group.command()
@click.argument("version", default=versions.DEFAULT)
@click.option("--out", type=Place(file_okay=False), help="The directory to write to (default: docs/schema/VERSION).")
@click.option("--bundle", "path", type=Place(exists=True), help="Your own schema bundle, instead of the packaged bundle.")
@click.option("--check", "only_check", is_flag=True, help="Do not write pages, but exit with status 1 if a page is out of date.")
@_JSON
@sentences
def doc(version: str, out: str | None, path: str | None, only_check: bool, as_json: bool) -> None:
    """Write a readable reference of the schemas of VERSION: one page for each method, event and type."""
    from codex_replay.protocol.schema.reference import pages

    try:
        loaded = _own(path, version) if path else bundle.load(version)
    except bundle.BundleError as error:
        raise click.UsageError(str(error)) from None
    into = out or os.path.join("docs", "schema", version)
    written = {name: text.encode() for name, text in pages(loaded)}
    before = dict(Folder(into))
    stale = [d.name for d in schema_gen.compare(before.items(), written.items(), ("there", "new"))]
    foreign = [name for name in before if not name.endswith(".md")]
    if foreign and not only_check:
        raise click.UsageError(f"{into} has files that are not pages ({foreign[0]}); name an empty directory with --out.")
    if not only_check:
        _write(into, written, before)
    if as_json:
        for_programs(json.dumps({"version": version, "out": into, "pages": len(written), "changed": stale}, indent=2))
    elif only_check:
        click.echo(f"{into}: {len(stale)} of {len(written)} pages are out of date.")
    else:
        click.echo(f"Codex {version}: {len(written)} pages in {into}, {len(stale)} of them changed.")
    if only_check and stale:
        raise SystemExit(1)


def _own(path: str, version: str) -> bundle.Bundle:
    try:
        return load_file(path, version)
    except bundle.BundleError:
        load_own(path)  # the message names the problem of the file, and explains what a bundle is
        raise


def _write(into: str, files: Mapping[str, bytes], before: Iterable[str]) -> None:
    """Write `files` to the folder `into`, and remove all other files in it; `before` lists the existing files."""
    for name in set(before) - files.keys():
        os.remove(os.path.join(into, *name.split("/")))
    for name, data in files.items():
        path = os.path.join(into, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
