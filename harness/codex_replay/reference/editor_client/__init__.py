"""The reference editor client: it behaves like codex.nvim, without an editor. The editor client runs as a program:

    python -m codex_replay.reference.editor_client CODEX

The client starts `CODEX app-server`, speaks JSON-RPC with it as docs/contract/editor.md describes, and is controlled by the
NDJSON lines of docs/editor-client.md on its own stdin and stdout. The editor client uses only the standard library; at its start,
it imports only the modules that every turn needs. The name `TYPE_CHECKING` is defined without `typing`, because type checkers
know the name itself.

    __main__     one loop over the two inputs, the driver's and the server's
    connection   JSON-RPC with the server: lines, ids, pending requests (connection.lua)
    process      the server as a program: its pipes, its start and its end
    session      one thread and its turns: prompts, approvals, output (session.lua)
"""
