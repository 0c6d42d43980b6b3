"""What a request must satisfy, whoever sends it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fake_server.backend_http import Request
    from fake_server.backend_sessions import Session


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
        error = {"message": self.message, "type": "invalid_request_error", "param": self.param, "code": self.code}
        return json.dumps({"error": error}, ensure_ascii=False, separators=(",", ":")).encode()


def check(request: Request, body: bytes, path: str, session: Session) -> dict[str, Any] | Violation:
    """Judge a request to `/responses`: its decoded body when it may pass."""
    try:
        value = json.loads(body)
    except ValueError as error:
        return Violation("json", 400, "invalid_json", f"The body is not JSON: {error}.")
    if not isinstance(value, dict):
        return Violation("json", 400, "invalid_json", "The body must be a JSON object.")
    return value
