"""The skeletons of `codex-replay init editor --kind`: a driver with four functions to connect to a plugin.

A fresh one keeps the contract of docs/editor-client.md: it ends each prompt as failed, and says what to connect.
"""

from __future__ import annotations

from pathlib import Path

from codex_replay.cli.init.files import PlannedFile, new_file

_NODE = """\
// Drives an editor plugin for `codex-replay run editor_client`. docs/editor-client.md of codex-replay has the contract.
//
// Connect the four functions to your plugin, and call report() wherever the plugin draws on the screen. Then:
//     codex-replay init editor "node codex-replay-driver.mjs {codex}"
import { createInterface } from 'node:readline'

const codex = process.argv[2] // start it as `codex app-server`, in the working directory
const report = (kind, fields) => process.stdout.write(JSON.stringify({ report: kind, ...fields }) + '\\n')

const plugin = {
  // Send the text as a turn. While it runs: report('text', { text }), and so on.
  // At its end, exactly once: report('end', { status }), which is completed, interrupted or failed.
  prompt(text) {
    report('error', { message: `prompt() of codex-replay-driver.mjs is not connected to a plugin (codex: ${codex})` })
    report('end', { status: 'failed' })
  },
  // Answer the approval that was reported with this id: accept, decline, or dismiss.
  decide(id, decision) {},
  // Interrupt the turn; do nothing between turns.
  interrupt() {},
  // End the server.
  async close() {},
}

const input = createInterface({ input: process.stdin, crlfDelay: Infinity })
input.on('line', (line) => {
  const command = JSON.parse(line)
  if (command.do === 'prompt') plugin.prompt(command.text)
  else if (command.do === 'decide') plugin.decide(command.id, command.decision)
  else if (command.do === 'interrupt') plugin.interrupt()
  else if (command.do === 'shutdown') input.close()
})
input.on('close', async () => {
  await plugin.close()
  process.exit(0)
})
"""

_PYTHON = '''\
"""Drives an editor plugin for `codex-replay run editor_client`. docs/editor-client.md of codex-replay has the contract.

Connect the four functions to your plugin, and call report() wherever the plugin draws on the screen. Then:
    codex-replay init editor "python3 codex-replay-driver.py {codex}"
"""

import json
import sys

CODEX = sys.argv[1]  # start it as `CODEX app-server`, in the working directory


def report(kind, /, **fields):
    """Tell the suite what the user sees."""
    print(json.dumps({"report": kind, **fields}), flush=True)


def prompt(text):
    """Send the text as a turn. While it runs: report("text", text=...), and so on.

    At its end, exactly once: report("end", status=...), which is completed, interrupted or failed. This function must
    return at once, so that the commands below can come while the turn runs.
    """
    report("error", message=f"prompt() of codex-replay-driver.py is not connected to a plugin (codex: {CODEX})")
    report("end", status="failed")


def decide(approval, decision):
    """Answer the approval that was reported with this id: accept, decline, or dismiss."""


def interrupt():
    """Interrupt the turn; do nothing between turns."""


def close():
    """End the server."""


for line in sys.stdin:
    command = json.loads(line)
    if command["do"] == "prompt":
        prompt(command["text"])
    elif command["do"] == "decide":
        decide(command["id"], command["decision"])
    elif command["do"] == "interrupt":
        interrupt()
    elif command["do"] == "shutdown":
        break
close()
'''

#: kind -> (file, program that runs it, text).
DRIVERS = {
    "node": ("codex-replay-driver.mjs", "node", _NODE),
    "python": ("codex-replay-driver.py", "python3", _PYTHON),
}


def driver(folder: Path, kind: str) -> tuple[PlannedFile, list[str]]:
    """Return the skeleton of a kind, and what to do with it."""
    name, program, text = DRIVERS[kind]
    steps = [
        f"Connect the functions of {name} to your plugin.",
        f'Try it, and write the gate: codex-replay init editor "{program} {name} {{codex}}"',
    ]
    return new_file(folder / name, text), steps
