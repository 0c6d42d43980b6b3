"""The error of the client: every failure is a `Problem`, and its text is shown to the user."""

from __future__ import annotations


class Problem(Exception):
    """The prompt cannot be answered; the text gives the cause and, if possible, the next step.

    `status` is the status of the HTTP answer, if there was one.
    """

    status: int | None = None


class Unauthorized(Problem):
    """The backend answered 401: it does not accept the access token or the API key, or no longer accepts it."""
