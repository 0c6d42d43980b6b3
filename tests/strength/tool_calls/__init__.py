"""The vectors of tool calls: the texts (grammar), what must come of them (oracle), and the parsers that they find (broken).

`python -m tests.strength.tool_calls` writes `harness/codex_replay/protocol/data/tool-calls.ndjson` (docs/tool-call-vectors.md).
"""
