"""What a measurement of strength found: verdicts on variants and checks, as JSON, as a table, in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.strength.fork import Told


@dataclass
class Result:
    """What the checks said to one variant; `why` tells of a run that did not go to its end, times in seconds."""

    name: str
    wrong: str
    named: list[str]
    told: list[Told]
    why: str | None
    seconds: float
    #: Red on the honest proxy too, and so no evidence.
    worthless: set[str] = field(default_factory=set)

    @property
    def red(self) -> dict[str, Told]:
        """The red cases, by their checks."""
        return {one.check: one for one in self.told if one.outcome == "red" and one.case not in self.worthless}

    @property
    def killers(self) -> list[str]:
        """The checks that its line names and that were red on it; none when it did not start or crashed."""
        return [] if self._crash else [check for check in self.named if check in self.red]

    @property
    def elsewhere(self) -> list[str]:
        """The checks that were red on it without being named."""
        return [check for check in self.red if check not in self.named]

    @property
    def blind(self) -> list[str]:
        """The checks that its line names and that were green on it."""
        return [check for check in self.named if check not in self.red and any(one.check == check for one in self.told)]

    @property
    def _crash(self) -> Told | None:
        return next((one for one in self.told if one.outcome == "crash"), None)

    @property
    def incomplete(self) -> bool:
        """Whether nothing was found, and the run did not go to its end."""
        return not self.killers and bool(self._crash or self.why)

    @property
    def reason(self) -> str:
        """Why it was not killed, in a sentence."""
        if crash := self._crash:
            return f"it is not wrong but broken, in {crash.check}: {crash.why}"
        if self.why:
            seen = {one.check for one in self.told if one.outcome == "green"}
            blind = [check for check in self.named if check in seen]
            return self.why + (f"; until then it was not seen, by {', '.join(blind)} among others" if blind else "")
        if self.worthless and not self.red:
            return f"{', '.join(sorted(self.worthless))} is red on the honest proxy too"
        if self.elsewhere:
            return f"{', '.join(self.named)} did not see it; {', '.join(self.elsewhere)} did, and its line does not say so"
        return f"no check saw it, not even {', '.join(self.named)}"


class Strength:
    """The whole measurement, of these checks."""

    def __init__(self, checks: list[str]) -> None:
        self.checks = checks
        self.results: list[Result] = []
        self.broken: list[str] = []
        self.settled = False
        self.complete = True

    def red_cases(self) -> set[tuple[str, str | None]]:
        """The cases that were red on a variant, each with the profile that it was run in."""
        return {(one.case, one.profile) for result in self.results for one in result.told if one.outcome == "red"}

    def settle(self, green: set[tuple[str, str | None]], broken: list[str]) -> None:
        """Take in which of the red cases are green on the honest proxy, and what went wrong there."""
        for result in self.results:
            result.worthless = {one.case for one in result.red.values() if (one.case, one.profile) not in green}
        self.broken = broken
        self.results.sort(key=lambda result: result.name)
        self.settled = True

    @property
    def kills(self) -> dict[str, list[str]]:
        """Each variant with the checks that kill it, those of its line first."""
        return {one.name: [*one.killers, *one.elsewhere] for one in self.results if one.killers}

    @property
    def survivors(self) -> list[Result]:
        """The variants that were not killed."""
        return [one for one in self.results if not one.killers]

    @property
    def idle(self) -> list[str]:
        """The checks that kill nothing."""
        killing = {check for checks in self.kills.values() for check in checks}
        return [check for check in self.checks if check not in killing]

    @property
    def problems(self) -> int:
        """How many things are not as they should be."""
        return len(self.survivors) + len(self.idle) + len(self.broken)

    def report(self) -> dict[str, Any]:
        """The result as JSON."""
        return {
            "strength": {
                "variants": len(self.results),
                "killed": len(self.results) - len(self.survivors),
                "checks": len(self.checks),
                "checks_that_kill": len(self.checks) - len(self.idle),
                "survivors": [one.name for one in self.survivors],
                "idle_checks": self.idle,
                "kills": self.kills,
                "complete": self.complete,
                "reasons": {one.name: one.reason for one in self.survivors},
                "named_but_green": {one.name: one.blind for one in self.results if one.blind and one.killers},
                "wrong": {one.name: one.wrong for one in self.results},
                "honest": self.broken or "green in every case that kills",
            }
        }

    def sentence(self) -> str:
        """The verdict in one line."""
        killed, checks = len(self.results) - len(self.survivors), len(self.checks) - len(self.idle)
        said = f"{killed} of {len(self.results)} variants killed, {checks} of {len(self.checks)} checks kill"
        return f"STRONG: {said}." if not self.problems else f"WEAK: {said}."


def lines(found: Strength) -> list[str]:
    """The table: each check with what it kills, then what was not killed and what kills nothing."""
    by_check: dict[str, list[str]] = {check: [] for check in found.checks}
    for variant, checks in found.kills.items():
        for check in checks:
            by_check.setdefault(check, []).append(variant)
    width = max(map(len, by_check), default=0)
    out = [f"{check.ljust(width)}  kills {', '.join(killed)}" for check, killed in sorted(by_check.items()) if killed]
    out += [
        f"{one.name} names {', '.join(one.blind)}, which did not see it" for one in found.results if one.blind and one.killers
    ]
    out += [f"NOT KILLED  {one.name} ({one.wrong}): {one.reason}" for one in found.survivors]
    out += [f"KILLS NOTHING  {check}" for check in found.idle]
    return out + [f"THE HONEST PROXY  {why}" for why in found.broken]
