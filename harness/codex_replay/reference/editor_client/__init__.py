"""The reference editor client: it behaves like codex.nvim, without an editor. The editor client runs as a program:

    python -m codex_replay.reference.editor_client CODEX

The client starts `CODEX app-server` and speaks JSON-RPC with it, as docs/contract/editor.md describes. A test controls the client
by NDJSON lines on the client's stdin and stdout, as docs/editor-client.md describes. The editor client uses only the standard
library, and at its start imports only the modules that every turn needs. The modules define `TYPE_CHECKING` without importing
`typing`, because type checkers recognise the name.

    __main__     one loop over the two inputs, the driver's and the server's
    connection   JSON-RPC with the server: lines, ids, pending requests (connection.lua)
    process      the server as a program: its pipes, its start and its end
    session      one thread and its turns: prompts, approvals, output (session.lua)
"""
