// A small proxy in another language, written for the tests: no dependency, one file, profile as-specified alone.
//
//     node small_proxy.mjs [DEFECT,DEFECT...]
//
// Without an argument it keeps to the two documents. Each DEFECT is a mistake that is easily made in this language; the test holds
// the suite to finding just those that were planted.
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { createInterface } from 'node:readline'
import { randomUUID } from 'node:crypto'

const defects = new Set((process.argv[2] ?? '').split(',').filter(Boolean))
const env = process.env
const flag = (name, usual) => (env[name] ?? String(usual)) === 'true'
const KEY = env.PROXY_API_KEY
const CWD = env.PROXY_CODEX_WORKDIR ?? '/tmp/codex-work'
const POLICY = env.PROXY_APPROVAL_POLICY ?? 'never'
const SANDBOX = env.PROXY_SANDBOX_MODE ?? 'read-only'
const ALIASES = { 'gpt-5.2-codev-l': ['gpt-5.2', 'low'] }

// -- the app-server ------------------------------------------------------------------------------------------------------

const child = spawn(env.CODEX_BIN, ['app-server'], { stdio: ['pipe', 'pipe', 'inherit'] })
child.on('exit', () => process.exit(1))
process.on('SIGTERM', () => { child.kill(); process.exit(0) })
const waiting = new Map()
const talks = new Map()
let lastId = 0

function call(method, params, taken) {
  const id = ++lastId
  child.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\n')
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject, taken }))
}

createInterface({ input: child.stdout, crlfDelay: Infinity }).on('line', (line) => {
  const frame = JSON.parse(line)
  if (frame.method === undefined) {
    const asked = waiting.get(frame.id)
    waiting.delete(frame.id)
    asked?.taken?.() // at once: the lines behind it may have come with it
    if (frame.error) asked?.reject(new Error(frame.error.message))
    else asked?.resolve(frame.result)
    return
  }
  const talk = talks.get(frame.params?.conversationId)
  if (!talk) return
  if (frame.method === 'codex/event/agent_message_delta') talk.text += frame.params.msg.delta
  // The turn and the message of one request are one turn or two: the end is the one after the message was taken.
  if (frame.method === 'codex/event/task_complete' && talk.taken) talk.done()
})

const ready = call('initialize', { clientInfo: { name: 'small-proxy', version: '1' } })
ready.then(() => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', method: 'initialized' }) + '\n'), () => {})

async function converse(opening, turn, message) {
  if (defects.has('ids-again')) lastId = 10
  const { conversationId } = await call('newConversation', opening)
  const talk = { text: '', taken: false }
  const end = new Promise((resolve) => (talk.done = resolve))
  talks.set(conversationId, talk)
  await call('addConversationListener', { conversationId })
  const calls = turn ? [call('sendUserTurn', { conversationId, ...turn })] : []
  calls.push(call('sendUserMessage', { conversationId, ...message }, () => (talk.taken = true)))
  await Promise.all(calls)
  await end
  talks.delete(conversationId)
  return talk.text
}

// -- instructions ----------------------------------------------------------------------------------------------------------

const RULES = [
  "Tool calling instructions:",
  "Only emit tool calls using <tool_call>...</tool_call>.",
  "Format: <tool_call>{\"name\":\"TOOL_NAME\",\"arguments\":\"{...}\"}</tool_call>",
  "Inside <tool_call>...</tool_call>, output ONLY a JSON object with keys \"name\" and \"arguments\".",
  "Always emit <tool_call> blocks exactly as shown; the client executes them.",
  "Do NOT call internal tools directly (shell, apply_patch, web_search, view_image); only emit <tool_call>.",
  "Read-only sandbox or approval restrictions do NOT prevent emitting <tool_call> output.",
  "Use EXACT parameter names from the schema; do NOT invent or rename keys.",
  "Do not add any extra characters before or after the JSON (no trailing \">\", no code fences).",
  "Use exactly one opening <tool_call> and one closing </tool_call> tag.",
  "Output must be valid JSON. Do not add extra braces or trailing characters.",
  "Do NOT wrap the JSON object in an array (no leading \"[\" or trailing \"]\").",
  "Bad: <tool_call>[{\"name\":\"tool\",\"arguments\":\"{...}\"}]</tool_call>",
  "Never repeat the closing tag.",
  "Example (exact): <tool_call>{\"name\":\"webSearch\",\"arguments\":\"{\\\"query\\\":\\\"example\\\",\\\"chatHistory\\\":[]}\"}</tool_call>",
  "The \"arguments\" field must be a JSON string.",
  "If a tool has no parameters, use arguments \"{}\".",
  "If no tool is needed, respond with plain text.",
]

function resolve(schema, root) {
  while (schema?.$ref) schema = schema.$ref.replace('#/', '').split('/').reduce((at, key) => at[key], root)
  return schema
}

function example(schema, root) {
  schema = resolve(schema, root)
  if (schema.const !== undefined) return schema.const
  if (schema.enum) return schema.enum[0]
  if (schema.anyOf ?? schema.oneOf) return example((schema.anyOf ?? schema.oneOf)[0], root)
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((each) => example(each, root)))
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1
  if (type === 'boolean') return true
  if (type === 'null') return null
  if (type === 'array') return Array.from({ length: schema.minItems ?? 1 }, () => example(schema.items ?? {}, root))
  if (type === 'object') {
    return Object.fromEntries((schema.required ?? []).map((name) => [name, example(schema.properties?.[name] ?? {}, root)]))
  }
  return 'example'.padEnd(schema.minLength ?? 0, '-').slice(0, schema.maxLength)
}

function instructionsFor(tools, choice) {
  if (!tools.length) return []
  const lines = []
  const forced = choice?.function?.name ?? choice?.name
  if (choice === 'none') lines.push('Tool choice is none: never emit <tool_call>.')
  if (choice === 'required') lines.push('Tool choice is required: you MUST emit at least one <tool_call>.')
  if (forced) lines.push(`Tool choice is forced: you MUST call "${forced}".`)
  const strict = tools.filter((tool) => tool.strict).map((tool) => tool.name)
  if (strict.length) lines.push(`Strict tools: ${strict.join(', ')}. Arguments MUST conform exactly to schema.`)
  const rules = defects.has('line-changed') ? RULES.map((line) => line.replace('Never repeat', 'Do not repeat')) : RULES
  const blocks = [rules.join('\n')]
  if (lines.length) blocks.push(lines.join('\n'))
  blocks.push(['Available tools (schema):', ...tools.map((t) => `- ${t.name}: ${JSON.stringify(t.parameters)}`)].join('\n'))
  const guidance = tools.map((tool) => {
    const schema = resolve(tool.parameters, tool.parameters)
    const names = Object.keys(schema.properties ?? {})
    const needed = new Set(schema.required ?? [])
    const call = JSON.stringify({ name: tool.name, arguments: JSON.stringify(example(schema, tool.parameters)) })
    return [
      `Tool: ${tool.name}`,
      ...(tool.description ? [`Description: ${tool.description}`] : []),
      'Parameters:',
      ...names.map((name) => `- ${name}${needed.has(name) ? ' (required)' : ''}`),
      'Example tool_call:',
      `<tool_call>${call}</tool_call>`,
    ].join('\n')
  })
  blocks.push('Per-tool guidance and examples (schema-conformant):\n' + guidance.join('\n\n'))
  return blocks
}

// -- input -------------------------------------------------------------------------------------------------------------------

class Items {
  list = []
  lines = []

  flush() {
    if (this.lines.length) this.list.push({ type: 'text', data: { text: this.lines.join('\n') } })
    this.lines = []
  }

  message(role, content) {
    if (!Array.isArray(content)) content = [{ type: 'text', text: content ?? '' }]
    let anchored = false
    for (const part of content) {
      if (part.text !== undefined) this.lines.push(anchored ? part.text : `[${role}] ${part.text}`)
      else if (part.image_url !== undefined) {
        if (!anchored) this.lines.push(`[${role}]`)
        this.flush()
        this.list.push({ type: 'image', data: { image_url: part.image_url.url ?? part.image_url } })
      }
      anchored = true
    }
    if (!anchored) this.lines.push(`[${role}]`)
  }

  done() {
    this.flush()
    return this.list.length ? this.list : [{ type: 'text', data: { text: '[user]' } }]
  }
}

const plain = (content) => (Array.isArray(content) ? content.map((part) => part.text ?? '').join('\n') : content ?? '')

function gather(messages) {
  const items = new Items()
  const system = []
  for (const each of messages) {
    if (each.type === 'function_call') items.lines.push(`[function_call ${each.name}] ${each.arguments}`)
    else if (each.type === 'function_call_output' || each.type === 'tool_output') items.lines.push(`[tool_output] ${plain(each.output)}`)
    else if (each.role === 'system' || each.role === 'developer') system.push(plain(each.content))
    else items.message(each.role ?? 'user', each.content)
  }
  return { items: items.done(), system }
}

// -- payloads ------------------------------------------------------------------------------------------------------------------

function payloads(body, chat) {
  const [model, implied] = ALIASES[body.model] ?? [body.model ?? 'gpt-5.2', undefined]
  const effort = (chat ? body.reasoning_effort : body.reasoning?.effort) ?? implied
  const asked = (body.tools ?? []).filter((tool) => tool.type === 'function')
  const tools = asked.map((tool) => tool.function ?? tool)
  const definitions = asked.map(({ type, ...rest }) => ({ type, ...(rest.function ? rest : { function: rest }) }))
  const messages = chat ? body.messages : typeof body.input === 'string' ? [{ role: 'user', content: body.input }] : body.input
  const { items, system } = gather(messages)
  const developer = instructionsFor(tools, body.tool_choice)
  if (!chat && body.instructions) developer.push(body.instructions)
  if (!chat) developer.push(...system)
  const base = chat && !flag('PROXY_IGNORE_CLIENT_SYSTEM_PROMPT', true) && system.length ? system.join('\n\n') : null
  const format = body.response_format ?? body.text?.format ?? null
  const schema = format?.json_schema?.schema ?? format?.schema ?? null
  const manifest = definitions.length && !flag('PROXY_RESPONSES_OMIT_TOOL_MANIFEST', false) ? { tools: { definitions } } : {}
  const usage = body.stream_options?.include_usage ?? false
  const limit = body.max_output_tokens ?? body.max_completion_tokens ?? body.max_tokens ?? null
  const temperature = defects.has('zero-is-nothing') ? body.temperature || null : body.temperature ?? null
  const topP = body.top_p ?? null
  const workspace = { writable_roots: [], network_access: false, exclude_tmpdir_env_var: false, exclude_slash_tmp: false }
  const developerInstructions = developer.length ? developer.join('\n\n') : null
  const opening = {
    model, cwd: CWD, approvalPolicy: POLICY, sandbox: SANDBOX, developerInstructions, baseInstructions: base, compactPrompt: null,
    config: null, includeApplyPatchTool: flag('PROXY_INCLUDE_APPLY_PATCH_TOOL', false),
    ...(chat || !manifest.tools ? {} : {
      dynamicTools: tools.map((t) => ({ name: t.name, description: t.description ?? '', inputSchema: t.parameters })),
    }),
  }
  const choices = body.n === undefined ? {} : { choiceCount: body.n, choice_count: body.n }
  if (defects.has('one-spelling')) delete choices.choice_count
  const turn = {
    items, cwd: CWD, approvalPolicy: POLICY, sandboxPolicy: { type: SANDBOX, ...(SANDBOX === 'workspace-write' ? workspace : {}) },
    model, summary: 'auto', ...(effort ? { effort } : {}), ...choices, ...manifest, outputSchema: null, output_schema: null,
  }
  const message = {
    items, includeUsage: usage, include_usage: usage, stream: body.stream ?? false, temperature, topP, top_p: topP,
    maxOutputTokens: limit, max_output_tokens: limit, ...manifest, responseFormat: format, response_format: format,
    ...(!chat && effort ? { reasoning: { effort } } : {}), finalOutputJsonSchema: schema, final_output_json_schema: schema,
  }
  return { opening, turn: !chat && flag('PROXY_RESPONSES_SKIP_TURN', false) ? null : turn, message, tools }
}

// -- tool calls --------------------------------------------------------------------------------------------------------------

const OPEN = '<tool_call>'
const CLOSE = '</tool_call>'

function endOfObject(text, from) {
  let depth = 0
  let quoted = false
  for (let i = from; i < text.length; i++) {
    const c = text[i]
    if (quoted) {
      if (c === '\\') i++
      else if (c === '"') quoted = false
    } else if (c === '"') quoted = true
    else if (c === '{' || c === '[') depth++
    else if ((c === '}' || c === ']') && --depth === 0) return i + 1
  }
  return -1
}

function parseCall(text, from) {
  const lead = /^(\s|\[|<tool_call>|```(json)?)*/.exec(text.slice(from))[0].length
  let start = from + lead
  let end = text[start] === '{' ? endOfObject(text, start) : -1
  if (defects.has('first-closing-tag')) end = Math.min(end, text.indexOf(CLOSE, start)) // the tag may stand in a string
  if (end < 0) {
    const close = text.indexOf(CLOSE, from)
    return { end: close < 0 ? text.length : close + CLOSE.length }
  }
  const tail = /^((\s|\]|\}|>|```)*<\/tool_call>)*/.exec(text.slice(end))[0].length
  const cut = text.slice(end + tail)
  const rest = tail || !/^[\s\]}>]*<?\/?t?o?o?l?_?c?a?l?l?$/.test(cut) ? end + tail : text.length
  try {
    const { name, arguments: given } = JSON.parse(text.slice(start, end))
    if (typeof name !== 'string') return { end: rest }
    return { end: rest, call: { name, arguments: typeof given === 'string' ? given || '{}' : JSON.stringify(given ?? {}) } }
  } catch {
    return { end: rest }
  }
}

function pieces(text, tools) {
  if (!tools.length) return [text]
  const found = []
  let said = ''
  for (let i = 0; i < text.length; ) {
    const ticks = /^`+/.exec(text.slice(i, i + 10))
    if (ticks) {
      const close = text.indexOf(ticks[0], i + ticks[0].length)
      const end = close < 0 ? text.length : close + ticks[0].length
      said += text.slice(i, end)
      i = end
    } else if (text.startsWith(OPEN, i)) {
      const { end, call: one } = parseCall(text, i + OPEN.length)
      if (one) {
        if (said.trim()) found.push(said)
        said = ''
        found.push(one)
      }
      i = end
    } else said += text[i++]
  }
  if (said.trim() || !found.length) found.push(said)
  return found
}

// -- answers -------------------------------------------------------------------------------------------------------------------

function chatAnswer(response, body, parts) {
  const text = parts.filter((part) => typeof part === 'string').join('')
  const calls = parts.filter((part) => typeof part !== 'string')
  const tool_calls = calls.map((one) => ({ id: `call_${randomUUID()}`, type: 'function', function: one }))
  const finish_reason = calls.length ? 'tool_calls' : 'stop'
  const head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model: body.model }
  if (!body.stream) {
    const message = { role: 'assistant', content: text, ...(calls.length ? { tool_calls } : {}) }
    send(response, 200, { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason }] })
    return
  }
  const chunk = (delta, reason = null) =>
    event(response, { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: reason }] })
  stream(response)
  chunk({ role: 'assistant', content: text })
  tool_calls.forEach((one, index) => chunk({ tool_calls: [{ index, ...one }] }))
  chunk({}, finish_reason)
  response.end('data: [DONE]\n\n')
}

function responsesAnswer(response, body, parts, mode) {
  if (mode === 'obsidian-xml') {
    parts = [parts.map((part) => (typeof part === 'string' ? part : OPEN + JSON.stringify(part) + CLOSE)).join('')]
  }
  const output = parts.map((part) =>
    typeof part === 'string'
      ? { type: 'message', id: randomUUID(), role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: part }] }
      : { type: 'function_call', id: randomUUID(), call_id: `call_${randomUUID()}`, status: 'completed', ...part })
  const head = { id: `resp_${randomUUID()}`, object: 'response', created_at: Date.now() / 1000, error: null, model: body.model }
  const whole = { ...head, status: 'completed', output }
  if (!body.stream) return send(response, 200, whole)
  stream(response)
  event(response, { type: 'response.created', response: { ...head, status: 'in_progress', output: [] } })
  output.forEach((item, output_index) => {
    if (item.content) event(response, { type: 'response.output_text.delta', output_index, delta: item.content[0].text })
    event(response, { type: 'response.output_item.done', output_index, item })
  })
  event(response, { type: 'response.completed', response: whole })
  response.end()
}

const stream = (response) => response.writeHead(200, { 'content-type': 'text/event-stream' })
const event = (response, value) => response.write(`data: ${JSON.stringify(value)}\n\n`)

function send(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

const refuse = (response, status, message) => send(response, status, { error: { message, type: 'invalid_request_error' } })

async function answer(request, response) {
  response.setHeader('x-request-id', randomUUID())
  if (request.headers.origin) response.setHeader('access-control-allow-origin', request.headers.origin)
  if (request.method === 'OPTIONS') {
    const allowed = { 'access-control-allow-methods': 'POST', 'access-control-allow-headers': 'authorization, content-type' }
    return response.writeHead(200, allowed).end()
  }
  const chunks = []
  for await (const piece of request) chunks.push(piece)
  const [scheme, ...key] = (request.headers.authorization ?? '').split(' ')
  if (scheme.toLowerCase() !== 'bearer' || key.join(' ') !== KEY) return refuse(response, 401, 'Give the right bearer.')
  if (request.method === 'GET' && request.url === '/v1/models') {
    return send(response, 200, { object: 'list', data: Object.keys(ALIASES).map((id) => ({ id, object: 'model' })) })
  }
  const chat = request.url === '/v1/chat/completions'
  if (!chat && request.url !== '/v1/responses') return refuse(response, 404, 'There is nothing here.')
  let body
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch {
    return refuse(response, 400, 'The body is no JSON.')
  }
  const given = chat ? body?.messages : body?.input
  if (typeof body !== 'object' || Array.isArray(body) || given === undefined) return refuse(response, 400, 'There is no prompt.')
  if (!chat && /^(Generate a .*title|Summarize) .*conversation/.test(given)) return responsesAnswer(response, body, ['A chat'])
  await ready
  const { opening, turn, message, tools } = payloads(body, chat)
  try {
    const parts = pieces(await converse(opening, turn, message), body.tool_choice === 'none' ? [] : tools)
    const mode = request.headers['x-proxy-output-mode'] ?? env.PROXY_RESPONSES_OUTPUT_MODE
    if (chat) chatAnswer(response, body, parts)
    else responsesAnswer(response, body, parts, mode)
  } catch (error) {
    refuse(response, 502, error.message)
  }
}

createServer(answer).listen(Number(env.PORT), '127.0.0.1')
