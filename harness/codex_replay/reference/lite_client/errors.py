"""What can go wrong. Every failure is a `Problem`, whose text is what the user reads."""

from __future__ import annotations


class Problem(Exception):
    """The prompt cannot be answered; the text says what happened, and what to do where something can be done.

    `status` is that of the HTTP answer, if one said so.
    """

    status: int | None = None


class Unauthorized(Problem):
    """The backend answered 401: the access token or the API key is not, or no longer, good."""
