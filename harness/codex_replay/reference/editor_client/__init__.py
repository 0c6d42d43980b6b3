"""The reference editor client: it behaves like codex.nvim, but has no editor. To start it:

    python -m codex_replay.reference.editor_client CODEX

The program starts `CODEX app-server` and speaks JSON-RPC with it, as docs/contract/editor.md describes. A test controls the
program by NDJSON lines on its stdin and stdout, as docs/editor-client.md describes. The client uses only the standard
library, and at its start imports only the modules that every turn needs. The modules define `TYPE_CHECKING` without
importing `typing`, because type checkers recognise the name.

    __main__     one loop over the two inputs, the driver's and the server's
    connection   JSON-RPC with the server: lines, ids, pending requests (connection.lua)
    process      the server as a program: its pipes, its start and its end
    session      one thread and its turns: prompts, approvals, output (session.lua)
"""
