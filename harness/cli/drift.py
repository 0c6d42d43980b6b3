"""`codex-replay drift FROM TO`: what changed in the protocol between two Codex versions, and whom it hits."""

from __future__ import annotations

import importlib

import click


@click.command()
@click.argument("from_", metavar="FROM")
@click.argument("to", metavar="TO")
@click.option("--json", "as_json", is_flag=True, help="Write the outcome as one JSON object.")
@click.option("--markdown", metavar="FILE", type=click.Path(dir_okay=False), help="Write the report as Markdown, too.")
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False), help="Write the report as one HTML file, too.")
@click.option("--cassettes", metavar="DIR", type=click.Path(), help="Tell which cases of these cassettes are hit.")
@click.option("--behaviour", is_flag=True, help="Run the suites' cases on both real binaries and compare the frames.")
def command(
    from_: str, to: str, as_json: bool, markdown: str | None, html: str | None, cassettes: str | None, behaviour: bool
) -> None:
    """Compare the schemas of FROM and TO, each a Codex version or a bundle file of your own.

    Ends with status 0 when nothing breaks, with 1 when something does, with 2 when it cannot be told.
    """
    if behaviour:
        module = importlib.import_module("harness.cli.drift_behaviour")
        raise SystemExit(module.run(from_, to, as_json, markdown=markdown, html=html, cassettes=cassettes))
    raise click.UsageError("comparing schemas is not there yet; use --behaviour.")
