"""A small reference client of the Codex Responses backend: `python -m codex_replay.reference.lite_client PROMPT`.

The client implements exactly docs/contract/lite.md: auth.json, one token refresh after a 401, a streamed request, the given tools
with their prepared results, and a follow-up request with every call and its output. The page docs/lite-client.md describes the
command line of the client. The client uses only the standard library. It shares no code with the fake backend or with the suite
that tests it.

A client that runs for one prompt spends most of its time on its start. Therefore the modules of this client import rarely needed
modules on demand, and import no module only for annotations. They define `TYPE_CHECKING` without importing `typing`, because type
checkers recognise the name.
"""
