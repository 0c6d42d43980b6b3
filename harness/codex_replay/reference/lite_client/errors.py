"""The errors of the reference lite client. Every failure raises a `Problem`, whose message the user sees."""

from __future__ import annotations


class Problem(Exception):
    """The client cannot answer the prompt. The message of a `Problem` names the cause and, if possible, the next step.

    `status` is the status of the HTTP response, if there was a response.
    """

    status: int | None = None


class Unauthorized(Problem):
    """The backend responded with 401: it does not accept the access token or the API key."""
