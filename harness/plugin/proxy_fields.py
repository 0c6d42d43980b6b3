"""Three verdicts on every field that a proxy sends: is it as specified, is it valid, does Codex 0.92 know it.

*As specified*: the field stands in app-server-payloads.md (or responses-handoff.md). *Valid*: the bundle's schema holds.
*Known*: the bundle has the name; an unknown one is accepted and silently ignored (real-codex-0.92.md, section 4). The report
also says whether a proxy sends a value, null, or nothing: "values are omitted when undefined", yet the examples have nulls.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from harness.plugin.proxy_http import Exchange
    from harness.protocol.validate import Validator

#: The names of the three payloads, as the documents give them.
SPECIFIED: dict[str, tuple[str, ...]] = {
    "newConversation": (
        *("model", "cwd", "approvalPolicy", "sandbox", "developerInstructions", "baseInstructions", "compactPrompt", "config"),
        *("includeApplyPatchTool", "dynamicTools"),
    ),
    "sendUserTurn": (
        *("conversationId", "items", "cwd", "approvalPolicy", "sandboxPolicy", "model", "summary", "effort", "choiceCount"),
        *("choice_count", "tools", "outputSchema", "output_schema", "developerInstructions"),
    ),
    "sendUserMessage": (
        *("conversationId", "items", "includeUsage", "include_usage", "stream", "temperature", "topP", "top_p"),
        *("maxOutputTokens", "max_output_tokens", "tools", "responseFormat", "response_format", "reasoning"),
        *("finalOutputJsonSchema", "final_output_json_schema"),
    ),
}


@cache
def _validator() -> Validator:
    from harness.protocol.bundle import load
    from harness.protocol.validate import Validator

    return Validator(load())


def fields(exchanges: Iterable[Exchange]) -> list[list[Any]]:
    """Return `[method, field, what, specified, valid, known]` for each field of the three calls; what is value or null."""
    rows: list[list[Any]] = []
    for call in (call for one in exchanges for call in one.calls(*SPECIFIED)):
        method, params = call["method"], call.get("params")
        if not isinstance(params, dict):
            continue
        schema = _validator().frame_schema("client", method)
        faults = schema.faults(call) if schema is not None else []
        rows.append([method, "", "call", True, True, True])
        for name, value in params.items():
            at = f"{method}.params.{name}"
            own = {f.verdict for f in faults if f.path == at or f.path.startswith((at + ".", at + "["))}
            what = "null" if value is None else "value"
            rows.append([method, name, what, name in SPECIFIED[method], "valid" not in own, "known" not in own])
    return rows


def table(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the table of a run, a line a field; the specified fields that never came are in it."""
    calls = Counter(row[0] for row in rows if not row[1])
    lines = [f"{'field':46} {'specified':>9} {'valid':>6} {'known':>6}   sent as"]
    for method, names in SPECIFIED.items():
        mine = [row for row in rows if row[0] == method and row[1]]
        extra = sorted({row[1] for row in mine} - set(names))
        for name in (*names, *extra):
            of = [row for row in mine if row[1] == name]
            how = Counter(row[2] for row in of)
            how["omitted"] = calls[method] - len(of)
            said = ", ".join(f"{word} {how[word]}x" for word in ("value", "null", "omitted") if how[word]) or "no call"
            marks = [_word(name in names), *(_word(all(row[i] for row in of)) if of else "-" for i in (4, 5))]
            lines.append(f"{f'{method}.{name}':46} {marks[0]:>9} {marks[1]:>6} {marks[2]:>6}   {said}")
    return lines


def _word(holds: bool) -> str:
    return "yes" if holds else "no"
