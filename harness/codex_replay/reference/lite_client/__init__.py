"""A small reference client of the Codex Responses backend: `python -m codex_replay.reference.lite_client PROMPT`.

The client follows docs/contract/lite.md exactly. The client reads auth.json, streams a request, and refreshes the tokens
once after a 401. The client answers the model's tool calls with prepared results: a follow-up request contains every call
with its output. docs/lite-client.md describes the command line of the client. The client uses only the standard library.
The client shares no code with the fake backend, or with the suite that tests it.

A client for one prompt spends most of its time on its start. Therefore the client imports rarely needed modules on demand, and
imports no module only for annotations. The modules define `TYPE_CHECKING` without importing `typing`, because type checkers
recognise the name.
"""
