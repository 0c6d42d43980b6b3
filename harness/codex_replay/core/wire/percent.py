"""Decode the percent-encoding of paths and queries.

The standard module `urllib.parse` is slow to import, so it is imported only for a text that contains a percent sign.

Source: RFC 3986, section 2.1, and the URL standard for the form of a query.
"""

from __future__ import annotations


def unquoted(text: str) -> str:
    """Return a part of a path with its percent-encoding decoded."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def query_values(query: str) -> dict[str, list[str]]:
    """Return a dictionary of the values in a query or in the body of a form."""
    if not query:
        return {}
    from urllib.parse import parse_qs

    return parse_qs(query)
