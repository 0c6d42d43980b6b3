"""Convert the JSON of a drift report to rows for the terminal, Markdown and an HTML page; write a form to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from codex_replay.protocol.drift.experimental import SAID

Report = Mapping[str, Any]
#: How many methods a row names that stands for several.
NAMED = 4

#: The names of the counts in a report, in the order of output.
COUNTS = {
    "client_methods": "client methods",
    "server_notifications": "server notifications",
    "server_requests": "server requests",
    "client_notifications": "client notifications",
    "events": "`codex/event` types",
}
_CHANGE = {
    "method-gone": "gone",
    "method-new": "new",
    "property-gone": "property gone",
    "property-new": "new property",
    "property-new-required": "new property, always sent",
    "property-required": "now required",
    "property-optional": "now optional",
    "value-gone": "value gone",
    "value-new": "new value",
    "variant-gone": "variant gone",
    "variant-new": "new variant",
    "enum-closed": "now restricted to a list of values",
    "enum-opened": "no longer restricted to a list of values",
    "type-changed": "type changed",
    "type-narrowed": "type narrowed",
    "type-widened": "type widened",
    "null-gone": "no longer null",
    "null-new": "may be null",
    "limits-narrowed": "bounds narrowed",
    "limits-widened": "bounds widened",
    "keys-closed": "unlisted keys refused",
    "keys-opened": "unlisted keys accepted",
    "map-gone": "no longer a map",
    "map-new": "now a map",
    "default-changed": "default changed",
    "keyword-changed": "unknown keyword changed",
}
#: The notes on a change that only some clients notice.
_MARKS = {
    "behind": f"now only for clients that send {SAID} in initialize",
    "without": f"noticed only by clients that do not send {SAID} in initialize",
    "with": f"noticed only by clients that send {SAID} in initialize",
}
_KINDS = {
    "client-request": "Requests of the client",
    "client-notification": "Notifications of the client",
    "server-request": "Requests of the server",
    "server-notification": "Notifications of the server",
    "event": "codex/event (v1 listeners)",
    "envelope": "The JSON-RPC envelope",
}


class Row(NamedTuple):
    """One row of a drift table: the place of the change, the change, its effect, the affected clients, the number of other
    places.
    """

    kind: str
    method: str
    path: str
    change: str
    means: str
    hit: str
    more: int


def rows(report: Report, cls: str) -> list[Row]:
    """Return the lines for the findings of a class (breaking or additive); with cassettes, only for findings that affect a case.

    If a version removes all ``codex/event`` types, all of them share one line.
    """
    return [_of_all_events(group) if len(group) > 1 else _row(group[0]) for group in _groups(report, cls)]


def _groups(report: Report, cls: str) -> list[list[Mapping[str, Any]]]:
    """Return the findings of a class (breaking or additive) in groups; if all events were removed, they form one group."""
    found = [finding for finding in report["findings"] if finding["class"] == cls]
    if report["cassettes"]:
        found = [finding for finding in found if finding.get("cases")]
    ended = [each for each in found if each["kind"] == "event" and each["rule"] == "method-gone" and not _MARKS.keys() & each]
    if len(ended) < 2 or report["counts"]["to"]["events"]:
        return [[finding] for finding in found]
    return [*([finding] for finding in found if finding not in ended), ended]


def _of_all_events(ended: Sequence[Mapping[str, Any]]) -> Row:
    return _row(ended[0])._replace(method="codex/event/*", change=f"gone: all {len(ended)} types", hit=_hit(ended))


def worst(report: Report, most: int) -> list[Row]:
    """Return at most `most` rows, for the changes with the most effects.

    If the user gave cassettes, the changes that affect most cases come first. Without cassettes, all removed methods of one
    kind become one row; these rows come first, then the changes at the most places.
    """
    if report["cassettes"]:
        ranked = sorted(_groups(report, "breaking"), key=lambda group: -len({case for each in group for case in each["cases"]}))
        return [_of_all_events(group) if len(group) > 1 else _row(group[0]) for group in ranked[:most]]
    gone: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    rest = []
    for each in (each for each in report["findings"] if each["class"] == "breaking"):
        if each["rule"] == "method-gone":
            gone.setdefault((each["kind"], next((mark for mark in _MARKS if mark in each), "")), []).append(each)
        else:
            rest.append(each)
    lines = [_removed(of) for of in sorted(gone.values(), key=len, reverse=True)]
    return [*lines, *map(_row, sorted(rest, key=lambda each: -len(each["places"])))][:most]


def _removed(findings: Sequence[Mapping[str, Any]]) -> Row:
    """Return one row for the removed methods of one kind."""
    one = _row(findings[0])
    if len(findings) == 1:
        return one
    names = ", ".join(each["method"] for each in findings[:NAMED]) + (", ..." if len(findings) > NAMED else "")
    return one._replace(method=f"{len(findings)} methods", path=_KINDS[one.kind], change=f"{one.change}: {names}")


def left_out(report: Report, most: int) -> str:
    """Return a sentence with the number of changes that the short form of the report omits, and the option that shows them.

    Return "" if the short form omits no change.
    """
    breaking, additive = report["counts"]["breaking"], report["counts"]["additive"]
    if not additive and len(rows(report, "breaking")) == len(worst(report, most)):
        return ""
    parts = [f"all {_some(breaking, 'change that breaks', 'changes that break')}"] if breaking else []
    parts += [f"the {_some(additive, 'change that only adds', 'changes that only add')}"] if additive else []
    return f"Show {' and '.join(parts)}: add --all."


def _row(finding: Mapping[str, Any]) -> Row:
    change = _CHANGE[finding["rule"]]
    whole = finding["rule"] in ("method-gone", "method-new")
    if finding["what"] and not whole:
        change += f": {finding['what']}"
    sides = [side for side in (finding["before"], finding["after"]) if side]
    if sides:
        change += f" ({' → '.join(sides)})"
    change += "".join(f"; {text}" for mark, text in _MARKS.items() if mark in finding)
    path = "" if whole else finding["path"]
    return Row(finding["kind"], finding["method"], path, change, finding["sentence"], _hit([finding]), len(finding["places"]) - 1)


def _hit(findings: Sequence[Mapping[str, Any]]) -> str:
    """Return the clients that a change affects (senders or readers of the message); with cassettes, return the affected cases."""
    who = {"senders": "clients that send it", "readers": "clients that read it", "nobody": "nobody"}[findings[0]["hits"]]
    if "cases" not in findings[0]:
        return who
    cases = sorted({case for finding in findings for case in finding["cases"]})
    shown = ", ".join(cases[:3]) + (f" and {len(cases) - 3} more" if len(cases) > 3 else "")
    return f"{who}: {shown}" if cases else "no case of these cassettes"


def verdict(report: Report) -> str:
    """Return the verdict: a sentence about the changes that break clients, and a sentence about the additive changes."""
    breaking, additive = report["counts"]["breaking"], report["counts"]["additive"]
    changes = (
        f"{_some(breaking, 'change breaks', 'changes break')} clients{_noticed(report, 'breaking')}. "
        f"{_some(additive, 'change adds', 'changes add')} something new{_noticed(report, 'additive')}"
    )
    cassettes = report["cassettes"]
    if not report["findings"]:
        spared = f", so {_affected(0, cassettes['cases'], lower=True)}" if cassettes else ""
        left = len(report["uncompared"])
        far = f" in what could be compared; {_some(left, 'part', 'parts')} could not be" if left else ""
        if report.get("ignored"):
            return f"No change from {report['from']} to {report['to']} concerns your client{spared}{far}.{_ignored(report)}"
        return f"Nothing changed between {report['from']} and {report['to']}{spared}{far}."
    if cassettes:
        used = len({number for numbers in cassettes["hits"].values() for number in numbers})
        by = f" by {_some(used, 'breaking change', 'breaking changes')}" if used else ""
        hit = f"{_affected(cassettes['hit'], cassettes['cases'])}{by}"
        return f"{hit}. In all, from {report['from']} to {report['to']}, {changes}.{_ignored(report)}"
    return f"From {report['from']} to {report['to']}, {changes}.{_ignored(report)}"


def _affected(hit: int, cases: int, lower: bool = False) -> str:
    """Return a clause for the drift report: how many of the user's cases a breaking change affects.

    With `lower`, the clause begins with a lower-case letter.
    """
    if cases == 1:
        clause = f"Your only case is {'' if hit else 'not '}affected"
    elif hit == 0:
        clause = f"None of your {cases} cases is affected"
    else:
        clause = f"{hit} of your {cases} cases {'is' if hit == 1 else 'are'} affected"
    return f"{clause[0].lower()}{clause[1:]}" if lower else clause


def _ignored(report: Report) -> str:
    """Return a sentence with the number of changes that the options --ignore, --reads and --sends have left out."""
    return (
        f" Not counted: {_some(report['ignored'], 'change', 'changes')} (--ignore, --reads, --sends)."
        if report.get("ignored")
        else ""
    )


def _noticed(report: Report, cls: str) -> str:
    """Return a note about the findings of a class (breaking or additive) that only some clients notice, with their number."""
    found = [finding for finding in report["findings"] if finding["class"] == cls]
    without = sum("behind" in finding or "without" in finding for finding in found)
    capable = sum("with" in finding for finding in found)

    def only(number: int) -> str:
        verb = ("breaks" if number == 1 else "break") if cls == "breaking" else ("is" if number == 1 else "are")
        return f"{number} of them {verb} only {'' if cls == 'breaking' else 'for '}clients that"

    parts = [f"{only(without)} do not send {SAID} in initialize"] if without else []
    if capable:
        parts.append(f"{only(capable)} send {'it' if without else f'{SAID} in initialize'}")
    return f" ({', '.join(parts)})" if parts else ""


def _some(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def breaks(report: Report) -> bool:
    """Return True if the change breaks a client; with cassettes, only if the change breaks one of their cases."""
    return bool(report["cassettes"]["hit"] if report["cassettes"] else report["counts"]["breaking"])


def totals(report: Report) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each count (such as methods or events), with its value in the old and in the new version."""
    for key, name in COUNTS.items():
        yield name, report["counts"]["from"][key], report["counts"]["to"][key]


def markdown(report: Report) -> str:
    """Return the report as Markdown for a pull request."""
    lines = [f"# Drift from {report['from']} to {report['to']}", "", verdict(report), ""]
    lines += [f"| | {report['from']} | {report['to']} |", "|---|---:|---:|"]
    lines += [f"| {name} | {old} | {new} |" for name, old, new in totals(report)]
    for cls, title in (("breaking", "What breaks"), ("additive", "What is added")):
        for kind, block in _blocks(rows(report, cls)):
            lines += ["", f"## {title}: {_KINDS[kind]}", "", *_table(block, cls == "breaking")]
    if report["uncompared"]:
        lines += ["", "## Parts that could not be compared", "", *(f"- {_cell(each)}" for each in report["uncompared"])]
    return "\n".join(lines) + "\n"


def _blocks(found: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    for kind in _KINDS:
        block = [row for row in found if row.kind == kind]
        if block:
            yield kind, block


def _table(block: Sequence[Row], breaking: bool) -> Iterator[str]:
    yield "| method | where | change | " + ("who is hit |" if breaking else "what it means |")
    yield "|---|---|---|---|"
    for row in block:
        path = f"`{row.path}`" if row.path else ""
        more = f" and {_some(row.more, 'other place', 'other places')}" if row.more else ""
        yield f"| `{row.method}` | {_cell(path)}{more} | {_cell(row.change)} | {_cell(row.hit if breaking else row.means)} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def write(path: str | None, form: Callable[[Any], str], report: dict[str, Any]) -> None:
    """Write one form of a report to the file that the user named; if the user named no file, do nothing.

    Raises ``OSError`` if the file cannot be written.
    """
    if path is not None:
        from codex_replay.shell.files.atomic import write_whole

        try:
            write_whole(path, form(report).encode())
        except OSError as error:
            error.filename = error.filename or path  # a full disk names none
            raise


def html_page(report: dict[str, Any]) -> str:
    """Return the report on a drift of schemas or of behaviour as one HTML page."""
    from codex_replay.report.page.build import drift_html  # not needed, and not loaded, where no page is written

    return drift_html(report)
