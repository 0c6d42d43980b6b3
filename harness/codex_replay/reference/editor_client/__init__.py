"""The reference editor client: what codex.nvim does, without the editor. It runs as a program:

    python -m codex_replay.reference.editor_client CODEX

It starts `CODEX app-server`, speaks JSON-RPC with it as docs/contract/editor.md has it, and is driven by the NDJSON lines
of docs/editor-client.md on its own stdin and stdout. It imports the standard library and nothing else, of which the start
loads no more than a turn needs: `TYPE_CHECKING` is a name that type checkers know, with or without `typing`.

    __main__     one loop over the two inputs, the driver's and the server's
    connection   JSON-RPC with the server: lines, ids, pending requests (connection.lua)
    process      the server as a program: its pipes, its start and its end
    session      one thread and its turns: prompts, approvals, output (session.lua)
"""
