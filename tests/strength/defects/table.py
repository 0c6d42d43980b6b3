"""The classes: how each is planted into each proxy, and the words by which a failure names it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[3]
MINIATURES = ROOT / "tests" / "miniatures" / "proxies"
#: What the two small proxies can do.
ABLE = ("chat", "responses", "stream", "models", "text-tools", "native-tools", "cors")
#: The dialects in which they find calls.
DIALECTS = ("tool_call", "use_tool")


class Defect(NamedTuple):
    """One class: the name that the small proxies know, the variants of the reference, and what a message about it says.

    `says` is a regular expression; the class is found if the message of a failed case matches it. `case` is an expression for
    pytest's -k, of few cases, one of which must find it.
    """

    name: str
    variant: str
    says: str
    case: str


DEFECTS = (
    Defect(
        "two-calls",
        "prompt-in-turn-and-message",
        r"submitted the prompt of one request 2 times",
        "test_one_request_is_one_submission",
    ),
    Defect(
        "first-message",
        "ends-at-the-first-message",
        r"The answer lacks 'Second part\.', a message of the turn",
        "test_the_answer_ends_at_the_turns_end",
    ),
    Defect(
        "usage-field", "usage-from-a-field-that-is-none", r"`usage` (must be \(1234, 56, 1290\)|of the answer to)", "test_usage"
    ),
    Defect(
        "late-errors",
        "faults-wait-for-an-idle-timeout",
        r"must end within 2 s after the app-server had reported the failed turn",
        "test_a_fault_becomes_a_status and 500",
    ),
    Defect(
        "no-approvals",
        "approvals-not-answered",
        r"did not answer the app-server's request .*requestApproval",
        "test_what_the_server_asks and whole and chat",
    ),
    Defect("foreign-thread", "events-of-any-thread", r"which is not the request's own", "test_events_of_a_foreign and text"),
    Defect(
        "no-schema",
        "schema-does-not-reach-the-model",
        r"text\.format\.schema of each request to the model",
        "test_a_schema_reaches_the_model",
    ),
    Defect(
        "partial-block",
        "partial-blocks-of-another-dialect-shown",
        r"markup of an incomplete call \(dialect use_tool\)|dialect is use_tool\.\nThe vector [\w-]+: An incomplete call at the",
        "test_the_calls and use_tool and cut-off",
    ),
    Defect(
        "unknown-members",
        "members-that-092-does-not-know",
        r"members that Codex 0\.92\.0 does not know",
        "test_no_unknown_members",
    ),
    Defect("lost-input", "calls-and-outputs-lost", r"input\[\d\].* did not reach the model", "test_a_tools_output and responses"),
    Defect(
        "repeated-deltas",
        "repeated-starts-lost",
        r"Text is lost or doubled if a delta begins with",
        "test_deltas_that_repeat",
    ),
    Defect(
        "no-interrupt",
        "a-dead-client-keeps-its-turn",
        r"After the client disconnected: turn/interrupt .* did not come",
        "test_a_client_that_goes_away",
    ),
    Defect(
        "half-answer",
        "a-death-in-mid-turn-is-the-end",
        r"app-server died during the turn, but the (status|stream)",
        "test_an_app_server_that_dies_in_mid_turn",
    ),
)
PROXIES = ("reference", "node", "loop")


def command(proxy: str, defects: tuple[Defect, ...]) -> list[str]:
    """Return the command of a proxy with these defects planted."""
    if proxy == "reference":
        if not defects:
            return [sys.executable, "-P", "-m", "codex_replay.reference.proxy"]
        variants = [defect.variant for defect in defects]
        return ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.strength.proxy_variants", *variants]
    program = (
        ["node", str(MINIATURES / "turn_proxy.mjs")] if proxy == "node" else [sys.executable, str(MINIATURES / "loop_proxy.py")]
    )
    return ["env", f"PROXY_DEFECTS={','.join(defect.name for defect in defects)}", *program]
