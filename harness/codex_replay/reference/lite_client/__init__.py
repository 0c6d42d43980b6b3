"""A small reference client of the Codex Responses backend: `python -m codex_replay.reference.lite_client PROMPT`.

The client implements exactly docs/contract/lite.md. The client reads auth.json, streams a request, and refreshes the tokens once
after a 401. The client answers the model's calls with prepared results, and sends every call with its output in a follow-up
request. The page docs/lite-client.md describes the command line of the client. The client uses only the standard library. The
client shares no code with the fake backend or with the suite that tests the client.

A client that runs for one prompt spends most of its time on its start. Therefore the modules of this client import rarely needed
modules on demand, and import no module only for annotations. The modules define `TYPE_CHECKING` without importing `typing`,
because type checkers recognise the name.
"""
