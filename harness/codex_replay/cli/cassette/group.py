"""`codex-replay cassette`: show, check, compare, redact and import cassettes; one module per verb."""

from __future__ import annotations

import click

from codex_replay.cli.cassette.diff import diff
from codex_replay.cli.cassette.import_ import import_
from codex_replay.cli.cassette.lint import lint
from codex_replay.cli.cassette.redact import redact
from codex_replay.cli.cassette.show import show
from codex_replay.cli.cassette.stats import stats


@click.group(name="cassette")
def group() -> None:
    """Show, check, compare, redact and import cassettes."""


for verb in (lint, show, diff, stats, redact, import_):
    group.add_command(verb)
