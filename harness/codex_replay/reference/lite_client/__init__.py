"""A small reference client of the Codex Responses backend: `python -m codex_replay.reference.lite_client PROMPT`.

It is what docs/contract/lite.md describes and no more: auth.json, one refresh on a 401, a streamed request, the tools it is
given with their canned results, a follow-up with every call and its output. docs/lite-client.md is the contract it is run by.
It uses only the standard library, so that it shares no line with the fake that answers it or the suite that tests it.

A client that is run for one prompt spends most of its time on starting, so that its modules load what only some prompts need
when they need it, and nothing for annotations alone: `TYPE_CHECKING` is a name that type checkers know, with or without `typing`.
"""
