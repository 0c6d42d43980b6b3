"""`codex-replay cassette`: look at cassettes, check, compare, redact and import them; a module a verb."""

from __future__ import annotations

import click

from harness.cli.cassette_diff import diff
from harness.cli.cassette_import import import_
from harness.cli.cassette_lint import lint
from harness.cli.cassette_redact import redact
from harness.cli.cassette_show import show
from harness.cli.cassette_stats import stats


@click.group(name="cassette")
def group() -> None:
    """Look at cassettes, check, compare, redact and import them."""


for verb in (lint, show, diff, stats, redact, import_):
    group.add_command(verb)
