"""Decode the percent-encoding of paths and queries. Few texts need this, and the standard `urllib.parse` is slow to import.

Source: RFC 3986, section 2.1, and the URL standard for the form of a query."""

from __future__ import annotations


def unquoted(text: str) -> str:
    """Return a part of a path without its percent-encoding."""
    if "%" not in text:
        return text
    from urllib.parse import unquote

    return unquote(text)


def query_values(query: str) -> dict[str, list[str]]:
    """Return the values of a query, or of a form, by their names."""
    if not query:
        return {}
    from urllib.parse import parse_qs

    return parse_qs(query)
