"""What a request must satisfy, whoever sends it and whatever is scripted: the table of rules.

Each rule has an id, a source, the answer that a violation gets, and a function that finds violations. The sources are the spec
documents by section, or "known of the real service" for what the service is known to do but no spec states; nothing here was
recorded from it. The table is applied from top to bottom and the first violation is answered, in the error shape of the OpenAI
API, with a message that says what to change. A script can switch rules off by id.

What is *not* refused is as much the contract (codex-lite-protocol.md, "Edge Case Behavior"): an invalid tool schema (1),
arguments that are not JSON (2), no tools (4), outputs of 20,000 characters (5), outputs in another order than their calls (6).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from fake_server import rules_auth, rules_body
from fake_server.rules_auth import Asked, Finding

LITE = "codex-lite-protocol.md"
KNOWN = "known of the real service"


@dataclass(frozen=True, slots=True)
class Violation:
    """A request that is refused: by which rule, and the answer it gets."""

    rule: str
    status: int
    code: str | None
    message: str
    param: str | None = None

    def body(self) -> bytes:
        """Write the error in the shape of the OpenAI API."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return json.dumps({"error": error}, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the table; `find` returns a finding (param, sentence) or None."""

    id: str
    source: str
    status: int
    code: str
    find: Callable[[Asked], Finding | None]


RULES = (
    # who asks
    Rule("bearer-missing", f"{LITE}, Required Headers", 401, "missing_bearer", rules_auth.bearer_missing),
    Rule("bearer-expired", f"{LITE}, Token Refresh", 401, "token_expired", rules_auth.bearer_expired),
    Rule("bearer-revoked", f"{LITE}, Token Refresh", 401, "token_revoked", rules_auth.bearer_revoked),
    Rule("bearer-wrong", f"{LITE}, Auth", 401, "invalid_api_key", rules_auth.bearer_wrong),
    Rule("account-missing", f"{LITE}, Required Headers", 400, "missing_account_id", rules_auth.account_missing),
    Rule("account-wrong", f"{LITE}, Auth", 403, "account_mismatch", rules_auth.account_wrong),
    Rule(
        "account-under-key",
        f"{LITE}, Required Headers: chatgpt auth only",
        400,
        "account_id_under_api_key",
        rules_auth.account_under_key,
    ),
    Rule("originator-missing", f"{LITE}, Required Headers", 400, "missing_header", rules_auth.originator_missing),
    Rule("session-id", f"{LITE}, Required Headers", 400, "invalid_header", rules_auth.session_id),
    # the body as a whole
    Rule("json", KNOWN, 400, "invalid_json", rules_body.not_json),
    Rule("model-missing", f"{LITE}, Request Body", 400, "missing_required_parameter", rules_body.model_missing),
    Rule("input-missing", f"{LITE}, Request Body", 400, "missing_required_parameter", rules_body.input_missing),
    Rule("type", f"{LITE}, Request Body", 400, "invalid_type", rules_body.wrong_type),
    Rule("unknown-parameter", KNOWN, 400, "unknown_parameter", rules_body.unknown_parameter),
    Rule("previous-response", f"{LITE}, Request Body: Note", 400, "unsupported_parameter", rules_body.previous_response),
    Rule("store-false", KNOWN, 400, "unsupported_value", rules_body.store_not_false),
    Rule("stream-true", KNOWN, 400, "unsupported_value", rules_body.stream_not_true),
    # tools
    Rule("tool-type", KNOWN, 400, "invalid_value", rules_body.tool_type),
    Rule("tool-name", f"{LITE}, Tool Specs", 400, "missing_required_parameter", rules_body.tool_name),
    Rule("tool-choice", KNOWN, 400, "invalid_value", rules_body.tool_choice),
    # the conversation
    Rule("item-type", KNOWN, 400, "invalid_value", rules_body.item_type),
    Rule("item-fields", f"{LITE}, Tool output follow-up", 400, "missing_required_parameter", rules_body.item_fields),
    Rule("message-content", KNOWN, 400, "invalid_value", rules_body.message_content),
    Rule("output-without-call", f"{LITE}, Edge Case 3", 400, "call_not_found", rules_body.output_without_call),
    Rule("call-without-output", KNOWN, 400, "output_not_found", rules_body.call_without_output),
)
#: The rules that look at who asks; the others look at the body.
AUTH_RULES = tuple(rule for rule in RULES if rule.find.__module__ == rules_auth.__name__)


def check(asked: Asked, off: Collection[str] = ()) -> dict[str, Any] | Violation:
    """Judge a request to `/responses`: its decoded body when it may pass, else the first violation."""
    return first_violation(asked, RULES, off) or asked.body


def first_violation(asked: Asked, rules: Collection[Rule], off: Collection[str] = ()) -> Violation | None:
    """Return the first violation of these rules, or None."""
    for rule in rules:
        if rule.id not in off and (found := rule.find(asked)) is not None:
            param, sentence = found
            return Violation(rule.id, rule.status, rule.code, sentence, param)
    return None


def unknown_rules(names: Collection[str]) -> str | None:
    """Say which of these names is no rule, or None."""
    ids = [rule.id for rule in RULES]
    wrong = [name for name in names if name not in ids]
    return f'rules_off: "{wrong[0]}" is no rule. The rules are {", ".join(ids)}.' if wrong else None
