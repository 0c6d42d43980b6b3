"""The table of the rules that apply to every request, whatever the client and the script.

Each rule has an id, a source, the answer to a violation, and a function that finds violations. The source of a rule is a
statement in docs/contract. If no statement contains the rule, its source is "known behaviour of the real service". No
traffic of the real service was recorded. The rules are checked from top to bottom. The answer to the first violation has
the error format of the OpenAI API, and its message says how to fix the request. A script can switch off a rule by its id.

The contract also lists requests that the backend accepts (LITE-63 to LITE-68). The accepted requests have an invalid tool
schema (1), arguments that are not JSON (2), no tools (4), outputs of 20,000 characters (5), or outputs in another order
than their calls (6).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from codex_fakes.backend.rules import auth, body
from codex_fakes.backend.rules.auth import Asked, RuleFinding
from codex_replay.core.value import Value
from codex_replay.core.wire.json_text import dumps

KNOWN = "known behaviour of the real service"


class Violation(Value):
    """A refused request: the rule that the request violates, and the answer to the request."""

    rule: str
    status: int
    code: str | None
    message: str
    param: str | None = None

    def body(self) -> bytes:
        """Return the error in the format of the OpenAI API."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.code}
        return dumps({"error": error})


class Rule(Value):
    """One row of the table; `find` returns a finding (param, sentence) or None."""

    id: str
    source: str
    status: int
    code: str
    find: Callable[[Asked], RuleFinding | None]


RULES = (
    # the client's identity
    Rule("bearer-missing", "LITE-24", 401, "missing_bearer", auth.bearer_missing),
    Rule("bearer-expired", "LITE-21", 401, "token_expired", auth.bearer_expired),
    Rule("bearer-revoked", "LITE-21", 401, "token_revoked", auth.bearer_revoked),
    Rule("bearer-wrong", "LITE-09", 401, "invalid_api_key", auth.bearer_wrong),
    Rule("account-missing", "LITE-06", 400, "missing_account_id", auth.account_missing),
    Rule("account-wrong", "LITE-06", 403, "account_mismatch", auth.account_wrong),
    Rule(
        "account-under-key",
        "LITE-08",
        400,
        "account_id_under_api_key",
        auth.account_under_key,
    ),
    Rule("originator-missing", "LITE-25", 400, "missing_header", auth.originator_missing),
    Rule("user-agent-missing", "LITE-27", 400, "missing_header", auth.user_agent_missing),
    Rule("session-id", "LITE-28", 400, "invalid_header", auth.session_id),
    # the body as a whole
    Rule("json", KNOWN, 400, "invalid_json", body.not_json),
    Rule("model-missing", "LITE-31", 400, "missing_required_parameter", body.model_missing),
    Rule("input-missing", "LITE-33", 400, "missing_required_parameter", body.input_missing),
    Rule("type", "LITE-31 to LITE-42", 400, "invalid_type", body.wrong_type),
    Rule("unknown-parameter", KNOWN, 400, "unknown_parameter", body.unknown_parameter),
    Rule("previous-response", "LITE-44", 400, "unsupported_parameter", body.previous_response),
    Rule("store-false", KNOWN, 400, "unsupported_value", body.store_not_false),
    Rule("stream-true", KNOWN, 400, "unsupported_value", body.stream_not_true),
    # tools
    Rule("tool-type", KNOWN, 400, "invalid_value", body.tool_type),
    Rule("tool-name", "LITE-45", 400, "missing_required_parameter", body.tool_name),
    Rule("tool-choice", KNOWN, 400, "invalid_value", body.tool_choice),
    # the conversation
    Rule("item-type", KNOWN, 400, "invalid_value", body.item_type),
    Rule("item-fields", "LITE-57", 400, "missing_required_parameter", body.item_fields),
    Rule("message-content", KNOWN, 400, "invalid_value", body.message_content),
    Rule("output-without-call", "LITE-58", 400, "call_not_found", body.output_without_call),
    Rule("call-without-output", KNOWN, 400, "output_not_found", body.call_without_output),
)
#: The rules on identity; the others check the body.
AUTH_RULES = tuple(rule for rule in RULES if rule.find.__module__ == auth.__name__)
_BODY_RULES = tuple(rule for rule in RULES if rule not in AUTH_RULES)


def check(asked: Asked, off: Collection[str] = ()) -> dict[str, Any] | Violation:
    """Check a request to `/responses`. Return the decoded body if the request is valid, otherwise the first violation."""
    rules = _BODY_RULES if asked.mode == "none" else RULES  # without a login, no rule on identity finds anything
    return first_violation(asked, rules, off) or asked.body


def first_violation(asked: Asked, rules: Collection[Rule], off: Collection[str] = ()) -> Violation | None:
    """Return the first of the given rules that a request violates, or None."""
    for rule in [rule for rule in rules if rule.id not in off] if off else rules:
        if (found := rule.find(asked)) is not None:
            param, sentence = found
            return Violation(rule.id, rule.status, rule.code, sentence, param)
    return None


def unknown_rules(names: Collection[str]) -> str | None:
    """Return an error message for the first of the given names that is not the id of a rule.

    Return None if all names are ids of rules.
    """
    ids = [rule.id for rule in RULES]
    wrong = [name for name in names if name not in ids]
    return f'rules_off: "{wrong[0]}" is not a rule. The rules are {", ".join(ids)}.' if wrong else None
