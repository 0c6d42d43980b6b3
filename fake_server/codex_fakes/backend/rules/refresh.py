"""The rules for the body of a request to the token URL (LITE-13 to LITE-16).

The functions here are pure, and need only the decoded body.

A body without `scope` is accepted, because it means the scope of the login (RFC 6749, section 6), and Codex 0.116.0 to
0.169.0 sends no `scope`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from codex_fakes.backend.rules.table import Violation

CLIENT_ID = "app_EMoamEEZ73f0CkXaXp7hrann"
GRANT = "refresh_token"
SCOPE = "openid profile email"


def violation(fields: Any) -> Violation | None:
    """Return the first violation in the decoded body of a refresh, or None. A body that is not a mapping is a violation."""
    if not isinstance(fields, Mapping) or fields.get("grant_type") != GRANT or not isinstance(fields.get("refresh_token"), str):
        problem = 'The body must be JSON, or a form, with "grant_type": "refresh_token" and a "refresh_token".'
        return Violation("refresh-body", 400, "invalid_request", problem)
    for rule, name, code, expected in (
        ("refresh-client", "client_id", "invalid_client", CLIENT_ID),
        ("refresh-scope", "scope", "invalid_scope", SCOPE),
    ):
        if fields.get(name) != expected and not (name == "scope" and name not in fields):
            had = f"is {fields[name]!r}" if name in fields else "is missing"
            return Violation(rule, 400, code, f'The "{name}" of the body must be "{expected}"; it {had}.', name)
    return None
