"""The error of the client: every failure is a `Problem`, and its text is shown to the user."""

from __future__ import annotations


class Problem(Exception):
    """The prompt cannot be answered; the text has what happened and, if possible, what to do.

    `status` is that of the HTTP answer, if there was one.
    """

    status: int | None = None


class Unauthorized(Problem):
    """The backend answered 401: the access token or the API key is not, or no longer, good."""
