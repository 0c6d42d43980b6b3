"""`codex-replay init proxy|editor|lite|ci`: detect the properties of a proxy or client, and write files to test it in CI."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from codex_replay.cli.init.drivers import DRIVERS, driver
from codex_replay.cli.init.files import PlannedFile, configuration_file, new_file, write
from codex_replay.cli.init.found import FINDERS, Found
from codex_replay.cli.init.workflow import NAME, repository, requirement, workflow
from codex_replay.cli.io.console import Unable, as_seconds, aside, sentences
from codex_replay.cli.io.stdout import for_programs
from codex_replay.core.text.escape import escape
from codex_replay.core.text.numbers import plural
from codex_replay.plugin.base.configuration import SUITE_OF, TABLE, BadConfiguration, Configuration, find_root, read
from codex_replay.plugin.base.subjects import BadSubject, slug
from codex_replay.protocol.versions import DEFAULT, STEPS

_VERBS = {"proxy": "proxy", "editor": "editor-client", "lite": "lite-client"}
_EXAMPLES = {"proxy": '"node server.js"', "editor": '"nvim --headless -l driver.lua {codex}"', "lite": '"node client.js"'}
_DONE = {"append": "appended", "create": "created", "keep": "kept"}
_WOULD = {"append": "would be appended to", "create": "would be created", "keep": "would be kept"}
#: Seconds for one answer of the subject, its start included.
WAIT = "30"
_WAITS = "How long to wait for the subject to start, and for each answer."
#: How long the first run takes, on two idle cores: 76 failed cases of an editor, most of them timeouts, took 12 minutes (loaded).
_TAKES = "one to four minutes, and longer if many cases time out, because each failed case is rerun, with the full time limit"
#: Options of a run that the first run chooses itself.
_BY_INIT = ("baseline", "report")
_DRY_STEP = "Run the command without --dry-run."

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
_DRY = click.option(
    "--dry-run", is_flag=True, help="Print the files that would be written, but do not write them. The suite does not run."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout: found, files, run, next.")
_CONTEXT = {"help_option_names": ["-h", "--help"]}


class _Command(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; if an option is unknown, advise the user to put the command of the proxy or client into quotes."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(
                f"{error.format_message()} If this option belongs to your command, put the command into quotes.", ctx
            ) from None


@click.group(context_settings=_CONTEXT)
def group() -> None:
    """Try a proxy or a client, and write its configuration, a CI workflow and the list of its known failures.

    `init` overwrites no file and no table. Exit status of `init`: 0 if the files were written, 1 if the proxy or client
    could not be judged, 2 if `init` failed.
    """


_KIND = click.option(
    "--kind",
    type=click.Choice(list(DRIVERS)),
    help="Write the skeleton of a driver in this language, and do not start an editor.",
)


def _app_server(default: str) -> Option:
    text = f"The only Codex to try, and the app-server of later runs. Default: Codex {DEFAULT}{default}."
    return click.option("--app-server", metavar="fake@VERSION", help=text)


def _add(verb: str, what: str, more: Option = lambda command: command) -> None:
    @group.command(verb, help=what, context_settings=_CONTEXT, cls=_Command)
    @click.argument("subject", nargs=-1, metavar="COMMAND" + ("|URL" if verb == "proxy" else ""))
    @click.option("--wait", metavar="SECONDS", default=WAIT, show_default=True, callback=as_seconds, help=_WAITS)
    @more
    @_DRY
    @_JSON
    @sentences
    def command(
        subject: tuple[str, ...],
        wait: float,
        dry_run: bool,
        as_json: bool,
        kind: str | None = None,
        app_server: str | None = None,
    ) -> None:
        if kind is not None:
            if subject:
                raise click.UsageError("--kind writes a new driver: leave the command out.")
            file, steps = driver(Path.cwd(), kind)
            _finish(None, verb, [file], None, [_DRY_STEP] if dry_run else steps, dry_run, as_json)
            return
        raise SystemExit(_init(verb, subject, wait, dry_run, as_json, app_server))


_add("proxy", "Try a proxy in front of `codex app-server`; name its command or its URL.", _app_server(f", then {STEPS[-1]}"))
_add(
    "editor",
    "Try an editor client (docs/editor-client.md); name its command, with {codex} as the path of codex.",
    lambda command: _KIND(_app_server("")(command)),
)
_add("lite", "Try a client of the Responses backend (docs/lite-client.md); name its command.")


@group.command("ci", context_settings=_CONTEXT)
@_DRY
@_JSON
@sentences
def ci(dry_run: bool, as_json: bool) -> None:
    """Write only the CI workflow, for a project that is already configured."""
    folder = Path.cwd()
    own = _configuration(folder)
    if own.path is None or not any(own.table.get(role) for role in SUITE_OF):
        raise Unable("No proxy or client is configured here. Run `codex-replay init proxy COMMAND` (or editor, lite) first.")
    files = [_workflow(own.path.parent, own.path)]
    steps = [_DRY_STEP] if dry_run else [*_placeholder(files), _commit(files)]
    _finish(None, "", files, None, steps, dry_run, as_json)


def _init(verb: str, words: tuple[str, ...], wait: float, dry_run: bool, as_json: bool, app_server: str | None = None) -> int:
    role, folder = _VERBS[verb], Path.cwd()
    own = _configuration(folder)
    subject = _subject(verb, words, folder)
    if not os.access(folder, os.W_OK) and not dry_run:
        raise Unable(f"The folder {folder} is not writable; --dry-run shows the files that would be written.")
    _refuse_secret(subject)
    _refuse_missing_file(subject, folder)
    configured = str(own.table.get("app-server", ""))
    fake = app_server or (configured if configured.startswith("fake@") else None)
    if fake is not None and not fake.startswith("fake@"):
        raise Unable(f"--app-server {fake}: give fake@VERSION, because init uses a scripted fake. Nothing was written.")
    found = _try(verb, subject, folder, wait, *([fake] if verb != "lite" else []))
    name = _name(folder)
    known = folder / f"known-{verb}.yaml"
    written = replace(found, options={}) if configured == found.options.get("app-server") else found
    table = configuration_file(folder, role, _table(role, name, written), own)
    if not as_json:
        click.echo("Found")
        _rows(found.lines)
        if found.lacks:
            below = not found.wrong and (dry_run or table.action == "keep")  # the table, which has the reasons, is printed
            _rows([("not capable", ", ".join(found.lacks))] if below else [("not capable", each) for each in _reasons(found)])
    if found.wrong:
        _finish(found, verb, [], None, [found.wrong], dry_run, as_json)
        return 1
    run = None
    if table.action != "keep" and found.judged and not dry_run:
        from codex_replay.cli.init.first_run import complete_report, first_run

        aside(f"running the suite {SUITE_OF[role]} once: {_TAKES}")
        options = {key: value for key, value in own.table.items() if not isinstance(value, dict) and key not in _BY_INIT}
        as_later = _table(role, name, replace(found, options={**options, **found.options}))
        report = folder / "reports" / f"{SUITE_OF[role]}-{slug(name)}"  # that of a later `codex-replay run`
        run = first_run(role, as_later, table.path.name, found.profile, report)
    listed = (run is not None and run.baseline is not None) or (dry_run and found.judged)
    if listed and table.action != "keep":
        found.row["baseline"] = known.name
        table = configuration_file(folder, role, _table(role, name, written), own)
    files = [table, _workflow(folder, table.path)]
    if run is not None and run.baseline is not None:
        files.insert(1, new_file(known, run.baseline))
    steps = [_DRY_STEP] if dry_run else _next(found, files, run, known)
    if run is not None:
        complete_report(run.report, steps, "codex-replay run")
        if run.failed:
            look = f"Look at the report: codex-replay report open {shlex.quote(os.path.relpath(run.report))}"
            steps.insert(0 if run.baseline is not None else 1, look)
    _finish(found, verb, files, run, steps, dry_run, as_json)
    return 0


def _configuration(folder: Path) -> Configuration:
    from codex_replay.plugin.base.option_table import KEYS

    try:
        return read(find_root(folder), KEYS)
    except BadConfiguration as error:
        raise Unable(f"{error} Nothing was written.") from None


def _subject(verb: str, words: tuple[str, ...], folder: Path) -> str:
    """Return the command that the user gave, otherwise the start script of a Node project."""
    if words:
        return words[0] if len(words) == 1 else shlex.join(words)
    if verb == "proxy":
        try:
            script = json.loads((folder / "package.json").read_bytes())["scripts"]["start"]
        except (OSError, ValueError, KeyError, TypeError):
            script = None
        if isinstance(script, str) and script.strip():
            return script if script.startswith("node ") and not set(script) & set("&|;<>$`") else "npm start"
    raise click.UsageError(f"Name the command that starts the subject: codex-replay init {verb} {_EXAMPLES[verb]}")


def _refuse_secret(subject: str) -> None:
    """Refuse a command that contains a secret, because the command would be written into the configuration.

    `{key}` is not a secret.
    """
    from codex_replay.core.redact.redactor import Redactor

    try:
        words = shlex.split(subject)
    except ValueError:
        return  # it is refused for that
    filled = [i for i, word in enumerate(words) if "{key}" in word]
    words = [word for i, word in enumerate(words) if i not in filled and i + 1 not in filled]
    if Redactor().argv(words) != words:
        raise Unable(
            "The command contains a secret, which would be written into the configuration. Let the program read the secret "
            "from a file, or write {key} for the key that the suite sends. Nothing was written."
        )


#: Programs whose first argument, if it is no option, is the file of a program.
_INTERPRETERS = re.compile(r"python[\d.]*|node|bun|deno|ruby|php|perl|lua|bash|sh")


def _refuse_missing_file(subject: str, folder: Path) -> None:
    """Refuse a command with a missing program file, because the error message of the interpreter would be hard to read."""
    try:
        program, file, *_ = shlex.split(subject)
    except ValueError:
        return  # it has one word, or it is refused later
    names_a_file = _INTERPRETERS.fullmatch(os.path.basename(program)) and "." in file[1:] and not file.startswith("-")
    if names_a_file and not (folder / file).exists():
        raise Unable(f"The command starts {file}, but there is no such file in {folder}. Nothing was written.")


def _try(verb: str, subject: str, folder: Path, wait: float, *fake: str | None) -> Found:
    import pytest

    from codex_replay.core.redact.redactor import Redactor
    from codex_replay.shell.rpc.client import SubjectFailure

    redactor = Redactor()
    try:
        return FINDERS[_VERBS[verb]](subject, str(folder), wait, aside, *fake).redacted(redactor)
    except (BadSubject, pytest.UsageError) as error:
        raise Unable(f"{error} Nothing was written.") from None
    except SubjectFailure as error:
        hint = "" if getattr(error, "answered", False) or subject.startswith(("http://", "https://")) else _READY
        raise Unable(f"{printable_lines(redactor.text(str(error)))}\n{hint}Nothing was written.") from None


_READY = (
    "A proxy must listen on 127.0.0.1, at the port in PORT (or where {port} stands in its command). It gets few variables of "
    "your environment, and an empty HOME: set the variables that it needs in the command, such as `env PYTHONPATH=src python -m "
    "mine`. "
)


def printable_lines(text: str) -> str:
    """Return a text of several lines with every control character escaped."""
    return "\n".join(escape(line) for line in text.split("\n"))


def _name(folder: Path) -> str:
    """Return a name for the proxy or client: the name of the folder, in a form that needs no quotes in TOML."""
    name = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in folder.name.lower()).strip("-")
    return name if name not in ("", "reference", "fake") else "mine"


def _table(role: str, name: str, found: Found) -> str:
    import tomli_w

    notes = "".join(f"# not capable of {escape(note)}\n" for note in _reasons(found))
    plain = {key: value for key, value in found.row.items() if not isinstance(value, list)}
    lists = "".join(f"{key} = {json.dumps(value)}\n" for key, value in found.row.items() if isinstance(value, list))
    options = tomli_w.dumps({"tool": {"codex-replay": dict(found.options)}}) + "\n" if found.options else ""
    return options + notes + tomli_w.dumps({"tool": {"codex-replay": {role: {name: plain}}}}) + lists


def _reasons(found: Found) -> list[str]:
    return [f"{name}: {why}" for name, why in found.lacks.items()]


def _workflow(folder: Path, configuration: Path) -> PlannedFile:
    package, placeholder = requirement()
    return new_file(repository(folder) / NAME, workflow(folder, configuration.name, package, placeholder))


def _next(found: Found, files: list[PlannedFile], run: Any, known: Path) -> list[str]:
    steps = list(found.steps)
    if files[0].action == "keep":
        steps.insert(0, f"Compare your [{TABLE}] in {files[0].path.name} with the settings above.")
    if run is not None and run.failed:
        steps = [*run.steps, *steps]
    if run is not None and run.baseline is None:
        steps.insert(0, "No list of known failures was written: the first cases all fail. Fix their most common cause first.")
    elif run is not None and run.entries:
        many = "1 entry" if run.entries == 1 else f"each of the {run.entries} entries"
        steps.append(f"Write a reason into {many} of {known.name}: the gate refuses an entry without a reason.")
    if not found.judged:
        steps.append(
            "Run the suite: codex-replay run. The suite sends several hundred requests to the proxy's own model, which may "
            "cost money."
        )
    else:
        steps.append("Run the gate: codex-replay run")
    steps += _placeholder(files)
    if made_here := _not_ignored(repository(files[0].path.parent), files[0].path.parent):
        steps.append(f"Add {' and '.join(made_here)} to .gitignore.")
    if made := _commit(files):
        steps.append(made)
    return steps


def _placeholder(files: list[PlannedFile]) -> list[str]:
    created = any(file.action == "create" and file.path.name == NAME.name for file in files)
    return (
        [f"Replace the placeholder in {NAME} by the source of codex-replay: a git URL or your own package."]
        if created and requirement()[1]
        else []
    )


def _not_ignored(root: Path, folder: Path) -> list[str]:
    """Return the folders that are missing from .gitignore, out of two: the report folder and the Python environment in use."""
    own = Path(sys.prefix)
    inside = own.is_relative_to(folder) and not (own / ".gitignore").exists()  # some tools make the environment ignore itself
    there: set[str] = set()
    for place in {root, folder}:
        with contextlib.suppress(OSError, UnicodeDecodeError):
            there.update(line.strip().strip("/") for line in (place / ".gitignore").read_text(encoding="utf-8").splitlines())
    names = ["reports", *([own.relative_to(folder).as_posix()] if inside else [])]
    return [f"{name}/" for name in names if name not in there]


def _commit(files: list[PlannedFile]) -> str:
    made = [os.path.relpath(file.path) for file in files if file.action != "keep"]
    return f"Commit {', '.join(made)}." if made else ""


def _finish(
    found: Found | None, verb: str, files: list[PlannedFile], run: Any, steps: list[str], dry_run: bool, as_json: bool
) -> None:
    """Write the files, and print the findings and the names of the written files."""
    if not as_json and run is not None:
        counts = f"{plural(run.cases, 'case')}: {run.passed} passed, {run.failed} failed, {run.skipped} skipped"
        _rows([("suite", f"{counts}; report: {os.path.relpath(run.report)}")])
        _rows([("", cause) for cause in run.causes])
    for file in () if dry_run else files:
        write(file)
    if as_json:
        for_programs(json.dumps(_data(found, verb, files, run, steps, dry_run), indent=2, ensure_ascii=False))
        return
    if files:
        click.echo("Files" if not dry_run else "Files (nothing was written)")
    for file in files:
        _show(file, dry_run)
    click.echo("Do this next")
    for number, step in enumerate(filter(None, steps), 1):
        click.echo(f"  {number}. {printable_lines(step)}")


def _rows(rows: list[tuple[str, str]]) -> None:
    for label, text in rows:
        click.echo(f"  {label:<12} {escape(text)}")


def _show(file: PlannedFile, dry_run: bool) -> None:
    word = (_WOULD if dry_run else _DONE)[file.action]
    why = f": {file.why}{'; it would have got' if file.text else ''}" if file.action == "keep" else ""
    click.echo(f"  {os.path.relpath(file.path)} {word}{why}")
    if dry_run or file.action == "keep":
        for line in file.text.splitlines():
            click.echo(f"    {line}".rstrip())


def _data(found: Found | None, verb: str, files: list[PlannedFile], run: Any, steps: list[str], dry_run: bool) -> dict[str, Any]:
    return {
        "init": 1,
        "role": _VERBS.get(verb),
        "dry_run": dry_run,
        "found": found and dict(found.data),
        "wrong": (found and found.wrong) or None,
        "files": [
            {"path": os.path.relpath(file.path), "action": file.action, "why": file.why or None, "text": file.text}
            for file in files
        ],
        "run": run
        and {
            **{key: getattr(run, key) for key in ("verdict", "cases", "passed", "failed", "skipped", "entries")},
            "report": str(run.report),
        },
        "next": [step for step in steps if step],
    }
