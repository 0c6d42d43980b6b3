"""The driver skeletons that `codex-replay init editor --kind` writes.

To use a skeleton, the user fills in four functions that drive an editor plugin.

As long as the user has filled in nothing, each prompt fails with an error that names the function to fill in.
"""

from __future__ import annotations

from pathlib import Path

from codex_replay.cli.init.files import PlannedFile, new_file

_NODE = """\
// Drives an editor plugin for `codex-replay run editor_client`. docs/editor-client.md of codex-replay has the contract.
//
// Connect the four functions to your plugin, and call report() wherever the plugin draws on the screen. Then:
//     codex-replay init editor "node codex-replay-driver.mjs {codex}"
//
// The suite compares the members of two requests with the document, although Codex makes some of them optional:
// thread/start has only cwd and sandbox: null (check `thread-members`),
// turn/start has only threadId, input and cwd (check `turn-members`).
// If your plugin sends other members on purpose, add these checks to the baseline.
import { createInterface } from 'node:readline'

const codex = process.argv[2] // start it as `codex app-server`, in the working directory
const report = (kind, fields) => process.stdout.write(JSON.stringify({ report: kind, ...fields }) + '\\n')

const plugin = {
  // Send the text as a turn. While it runs, report what the plugin shows:
  //   report('text', { text }), report('output', { text }), report('diff', { diff }), report('plan', { steps }),
  //   report('approval', { id, kind, reason, command }): kind is command or fileChange, id is your own,
  //   report('error', { message })
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

The suite compares the members of two requests with the document, although Codex makes some of them optional:
thread/start has only cwd and sandbox: null (check `thread-members`),
turn/start has only threadId, input and cwd (check `turn-members`).
If your plugin sends other members on purpose, add these checks to the baseline.
"""

import json
import sys

CODEX = sys.argv[1]  # start it as `CODEX app-server`, in the working directory


def report(kind, /, **fields):
    """Tell the suite what the user sees."""
    print(json.dumps({"report": kind, **fields}), flush=True)


def prompt(text):
    """Send the text as a turn. While it runs, report what the plugin shows:

    report("text", text=...), report("output", text=...), report("diff", diff=...), report("plan", steps=...),
    report("approval", id=..., kind=..., reason=..., command=...): kind is command or fileChange, id is your own,
    report("error", message=...).

    At its end, exactly once: report("end", status=...), which is completed, interrupted or failed. This function must
    return immediately, so that the commands below can come while the turn runs.
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

_LUA = """\
-- Drives an editor plugin for `codex-replay run editor_client`. docs/editor-client.md of codex-replay has the contract.
--
-- Connect the four functions to your plugin, and call report() wherever the plugin draws on the screen. Then:
--     codex-replay init editor "nvim --headless -l codex-replay-driver.lua {codex}"
--
-- The suite compares the members of two requests with the document, although Codex makes some of them optional:
-- thread/start has only cwd and sandbox: null (check `thread-members`),
-- turn/start has only threadId, input and cwd (check `turn-members`).
-- If your plugin sends other members on purpose, add these checks to the baseline.
--
-- Plain Lua runs this file as well; only in Neovim do the plugin's own callbacks run while it waits for commands.
local codex = arg[1] -- start it as `codex app-server`, in the working directory

local function quote(text)
  local escaped = text:gsub('[%c"\\\\]', function(sign)
    return ('\\\\u%04x'):format(sign:byte())
  end)
  return '"' .. escaped .. '"'
end

-- Return a value as JSON. Plain Lua has no JSON library; there a table becomes an object, unless it has a first item.
local function encode(value)
  if vim then return vim.json.encode(value) end
  if type(value) == 'string' then return quote(value) end
  if type(value) ~= 'table' then return tostring(value) end
  local parts = {}
  if value[1] ~= nil then
    for _, item in ipairs(value) do parts[#parts + 1] = encode(item) end
    return '[' .. table.concat(parts, ',') .. ']'
  end
  for key, item in pairs(value) do parts[#parts + 1] = quote(key) .. ':' .. encode(item) end
  return '{' .. table.concat(parts, ',') .. '}'
end

local ESCAPES = { b = '\\b', f = '\\f', n = '\\n', r = '\\r', t = '\\t' }

-- Return a command, which is one flat JSON object of strings and numbers.
local function decode(line)
  if vim then return vim.json.decode(line) end
  local command, at = {}, 1
  local function text()
    local parts = {}
    while true do
      local plain, sign, after = line:match('^([^"\\\\]*)(["\\\\])()', at)
      parts[#parts + 1], at = plain, after
      if sign == '"' then return table.concat(parts) end
      local escape = line:sub(at, at)
      at = at + 1
      if escape == 'u' then
        local code = tonumber(line:sub(at, at + 3), 16)
        at = at + 4
        if code >= 0xD800 and code < 0xDC00 then -- the first half of a surrogate pair
          code = 0x10000 + (code - 0xD800) * 0x400 + tonumber(line:sub(at + 2, at + 5), 16) - 0xDC00
          at = at + 6
        end
        parts[#parts + 1] = utf8.char(code)
      else
        parts[#parts + 1] = ESCAPES[escape] or escape
      end
    end
  end
  while true do
    at = line:match('^[%s{,]*"()', at)
    if not at then return command end
    local key = text()
    at = line:match('^%s*:%s*()', at)
    if line:sub(at, at) == '"' then
      at = at + 1
      command[key] = text()
    else
      local word, after = line:match('^([^,}%s]+)()', at)
      command[key], at = tonumber(word), after
    end
  end
end

-- Report to the suite what the user sees.
local function report(kind, fields)
  fields.report = kind
  io.stdout:write(encode(fields), '\\n')
  io.stdout:flush()
end

local plugin = {}

-- Send the text as a turn. While it runs, report what the plugin shows:
--   report('text', { text = ... }), report('output', { text = ... }), report('diff', { diff = ... }),
--   report('plan', { steps = ... }), report('error', { message = ... }),
--   report('approval', { id = ..., kind = ..., reason = ..., command = ... }): kind is command or fileChange, id is your own
-- At its end, exactly once: report('end', { status = ... }), which is completed, interrupted or failed.
-- This function must return immediately, so that the commands below can come while the turn runs.
function plugin.prompt(text)
  local message = 'prompt() of codex-replay-driver.lua is not connected to a plugin (codex: ' .. codex .. ')'
  report('error', { message = message })
  report('end', { status = 'failed' })
end

-- Answer the approval that was reported with this id: accept, decline, or dismiss.
function plugin.decide(id, decision) end

-- Interrupt the turn; do nothing between turns.
function plugin.interrupt() end

-- End the server.
function plugin.close() end

local ended = false

local function run(line)
  local command = decode(line)
  if command['do'] == 'prompt' then plugin.prompt(command.text)
  elseif command['do'] == 'decide' then plugin.decide(command.id, command.decision)
  elseif command['do'] == 'interrupt' then plugin.interrupt()
  elseif command['do'] == 'shutdown' then ended = true
  end
end

if vim then
  local uv = vim.uv or vim.loop
  local input, rest = uv.new_pipe(false), ''
  input:open(0)
  input:read_start(vim.schedule_wrap(function(_, data)
    rest = rest .. (data or '')
    for line in rest:gmatch('([^\\n]*)\\n') do
      if not ended then run(line) end
    end
    rest = rest:match('[^\\n]*$')
    if not data then ended = true end
  end))
  while not ended do
    vim.wait(1000, function() return ended end, 5)
  end
  plugin.close()
  os.exit(0)
end
for line in io.lines() do
  run(line)
  if ended then break end
end
plugin.close()
"""

#: kind -> (file, program that runs it, text).
DRIVERS = {
    "lua": ("codex-replay-driver.lua", "nvim --headless -l", _LUA),
    "node": ("codex-replay-driver.mjs", "node", _NODE),
    "python": ("codex-replay-driver.py", "python3", _PYTHON),
}


def driver(folder: Path, kind: str) -> tuple[PlannedFile, list[str]]:
    """Return the skeleton for a kind of editor, and the next steps for the user."""
    name, program, text = DRIVERS[kind]
    steps = [
        f"Connect the functions of {name} to your plugin.",
        f'Try it, and write the gate: codex-replay init editor "{program} {name} {{codex}}"',
    ]
    return new_file(folder / name, text), steps
