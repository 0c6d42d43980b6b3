"""The exception that a method of the scripted fake raises to refuse a request."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INVALID_REQUEST = -32600


class Refused(Exception):
    """A client's request that must be answered with an error. The error object has `code`, the message and `data`."""

    def __init__(self, message: str, code: int = INVALID_REQUEST, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data

    def error(self) -> dict[str, Any]:
        """Return the error object for the answer, with its members in the order of the real server."""
        data = {} if self.data is None else {"data": self.data}
        return {"code": self.code, **data, "message": str(self)}
