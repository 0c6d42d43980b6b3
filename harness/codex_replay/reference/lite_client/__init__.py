"""A small reference client of the Codex Responses backend: `python -m codex_replay.reference.lite_client PROMPT`.

The client implements exactly docs/contract/lite.md: auth.json, one refresh on a 401, a streamed request, the given tools
with their canned results, a follow-up with every call and its output. docs/lite-client.md is the contract for its command line.
The client uses only the standard library, so that it shares no code with the fake that answers it or the suite that tests it.

A client that is run for one prompt spends most of its time on its start. The modules of this client therefore import rarely
needed modules on demand, and import no module only for annotations: the name `TYPE_CHECKING` is defined without `typing`, because
type checkers know the name itself.
"""
