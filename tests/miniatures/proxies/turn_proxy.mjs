// A small proxy of the profile works-on-0.92, written for the tests: Node, callbacks, one shared app-server, no dependency.
//
//     PROXY_DEFECTS=NAME,NAME... node turn_proxy.mjs
//
// It has no obsidian-xml and title-intercept. Each NAME plants one class of defects of real proxies; the tests hold
// the suite to naming it.
import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { randomUUID } from 'node:crypto'

const env = process.env
const defects = new Set((env.PROXY_DEFECTS ?? '').split(',').filter(Boolean))
const POLICY = env.PROXY_APPROVAL_POLICY ?? 'never'
const CWD = env.PROXY_CODEX_WORKDIR ?? '/tmp'
const KEEPS_SYSTEM = env.PROXY_IGNORE_CLIENT_SYSTEM_PROMPT === 'false'
const MODELS = ['gpt-5.2', 'gpt-5.2-codex']
const DECLINED = { decision: 'decline' }

class Refusal extends Error {
  constructor(status, message, param = null) {
    super(message)
    Object.assign(this, { status, param })
  }
}

// -- the app-server ------------------------------------------------------------------------------------------------------

class AppServer {
  waiting = new Map()
  turns = new Map()
  newest = null
  lastId = 0
  dead = false

  constructor() {
    this.child = spawn(env.CODEX_BIN, ['app-server'], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.child.on('exit', () => this.end())
    this.child.on('error', () => this.end())
    this.child.stdin.on('error', () => {})
    let rest = Buffer.alloc(0)
    this.child.stdout.on('data', (chunk) => {
      rest = Buffer.concat([rest, chunk])
      for (let at; (at = rest.indexOf(10)) >= 0; rest = rest.subarray(at + 1)) this.line(rest.subarray(0, at).toString())
    })
    const clientInfo = { name: 'turn-proxy', title: null, version: '1' }
    const capabilities = { experimentalApi: true }
    this.ready = this.call('initialize', defects.has('unknown-members') ? { clientInfo, capabilities } : { clientInfo })
    this.ready.then(() => this.write({ method: 'initialized' }), () => {})
  }

  end() {
    this.dead = true
    for (const { reject } of this.waiting.values()) reject(new Refusal(502, 'The app-server ended.'))
    for (const turn of this.turns.values()) {
      if (defects.has('half-answer')) turn.onEnd()
      else turn.onError(new Refusal(502, 'The app-server ended in mid-turn.'))
    }
  }

  write(frame) {
    // Codex drops a line with half a surrogate pair.
    const whole = (_, value) => (typeof value === 'string' ? value.replace(/\p{Surrogate}/gu, '\ufffd') : value)
    if (!this.dead) this.child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...frame }, whole) + '\n')
  }

  call(method, params, onResult) {
    if (this.dead) return Promise.reject(new Refusal(502, 'The app-server ended.'))
    const id = ++this.lastId
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, onResult })
      this.write({ id, method, params })
    })
  }

  line(text) {
    const frame = JSON.parse(text)
    if (frame.method === undefined) {
      const asked = this.waiting.get(frame.id)
      this.waiting.delete(frame.id)
      if (frame.error) asked?.reject(new Refusal(502, `The app-server refused: ${frame.error.message}`))
      else {
        asked?.onResult?.(frame.result)
        asked?.resolve(frame.result)
      }
      return
    }
    const turn = this.turns.get(frame.params?.threadId) ?? (defects.has('foreign-thread') ? this.newest : undefined)
    if (frame.id !== undefined) {
      if (frame.method === 'item/tool/call') {
        if (turn) turn.open.push(frame.id)
        else this.write({ id: frame.id, result: { output: 'Not here.', success: false } })
      } else if (!defects.has('no-approvals')) this.write({ id: frame.id, result: DECLINED })
      return
    }
    turn?.take(frame.method, frame.params)
  }
}

let server = null
function appServer() {
  if (!server || server.dead) server = new AppServer()
  return server
}
process.on('SIGTERM', () => { server?.child.kill(); process.exit(0) })

// -- a turn ----------------------------------------------------------------------------------------------------------------

const CLOSES = { '<tool_call>': '</tool_call>', '<use_tool>': '</use_tool>' }

/** Finds calls in the text of one message. */
class Blocks {
  rest = ''

  constructor(onText, onCall) { Object.assign(this, { onText, onCall }) }

  feed(text) {
    this.rest += text
    for (;;) {
      const found = Object.keys(CLOSES).map((open) => ({ open, at: this.rest.indexOf(open) })).filter(({ at }) => at >= 0)
      if (!found.length) return this.say(this.rest.length - this.held())
      const { open, at } = found.sort((one, other) => one.at - other.at)[0]
      this.say(at)
      let end = this.rest.indexOf(CLOSES[open])
      let call = null
      for (; end >= 0; end = this.rest.indexOf(CLOSES[open], end + 1)) {
        call = this.read(open, this.rest.slice(open.length, end))
        if (call) break
      }
      if (!call) return
      this.rest = this.rest.slice(end + CLOSES[open].length)
      this.onCall(call)
    }
  }

  /** How many characters at the end may be the beginning of a tag. */
  held() {
    for (let n = Math.min(this.rest.length, 10); n > 0; n--) {
      if (Object.keys(CLOSES).some((open) => open.startsWith(this.rest.slice(-n)))) return n
    }
    return 0
  }

  say(n) {
    if (n) this.onText(this.rest.slice(0, n))
    this.rest = this.rest.slice(n)
  }

  read(open, content) {
    if (open === '<use_tool>') {
      const members = Object.fromEntries([...content.matchAll(/<([\w.-]+)>([^]*?)<\/\1>/g)].map(([, key, value]) => [key, value]))
      const { name, ...args } = members
      return name && { name, arguments: JSON.stringify(args) }
    }
    try {
      const call = JSON.parse(content)
      const args = call.arguments ?? {}
      return typeof call.name === 'string' && { name: call.name, arguments: typeof args === 'string' ? args || '{}' : JSON.stringify(args) }
    } catch { return null }
  }

  close() {
    const open = Object.keys(CLOSES).find((each) => this.rest.startsWith(each))
    if (!open || (open === '<use_tool>' && defects.has('partial-block'))) this.say(this.rest.length)
  }
}

class Turn {
  open = []
  blocks = new Map()
  calls = []
  usage = null
  said = new Map()
  last = ''

  constructor(names, handlers) {
    this.names = names
    Object.assign(this, handlers) // onText(item, text), onEnd(), onError(error)
  }

  /** With `parallel_tool_calls: false`, an answer has one call. */
  add(call) {
    if (!this.single || !this.calls.length) this.calls.push(call)
  }

  take(method, params) {
    if (method === 'item/agentMessage/delta') {
      let text = params.delta
      if (defects.has('repeated-deltas') && this.last && text.startsWith(this.last)) text = text.slice(this.last.length)
      this.last = params.delta
      this.said.set(params.itemId, (this.said.get(params.itemId) ?? '') + params.delta)
      if (text) this.text(params.itemId, text)
    } else if (method === 'item/completed' && params.item.type === 'agentMessage') {
      const so = this.said.get(params.item.id) ?? ''
      if (params.item.text.length > so.length && !defects.has('repeated-deltas')) this.text(params.item.id, params.item.text.slice(so.length))
      this.blocks.get(params.item.id)?.close()
      if (defects.has('first-message')) this.finish()
    } else if (method === 'rawResponseItem/completed' && params.item.type === 'function_call' && this.names.has(params.item.name)) {
      this.add(params.item)
    } else if (method === 'thread/tokenUsage/updated') {
      this.usage = defects.has('usage-field') ? params.tokenUsage.used : params.tokenUsage.total
      if (this.calls.length) this.finish()
    } else if (method === 'error' && !params.willRetry) this.fail(params.error)
    else if (method === 'turn/completed') {
      if (params.turn.status === 'failed') this.fail(params.turn.error)
      else this.finish()
    }
  }

  /** Hand on the text of a message; with tools, the calls in it are taken out. */
  text(item, text) {
    if (!this.names.size) return this.onText(item, text)
    if (!this.blocks.has(item)) {
      const onCall = (call) => this.add({ ...call, call_id: `call_${randomUUID()}` })
      this.blocks.set(item, new Blocks((part) => this.onText(item, part), onCall))
    }
    this.blocks.get(item).feed(text)
  }

  fail(error) {
    if (defects.has('late-errors') && !/401/.test(error?.message)) {
      setTimeout(() => this.onError(new Refusal(504, 'The app-server sent nothing for too long.')), 4000)
      return
    }
    const message = error?.message ?? 'The turn failed.'
    const info = error?.codexErrorInfo
    const status = info === 'contextWindowExceeded' ? 400 : info === 'usageLimitExceeded' || /\b429\b/.test(message) ? 429 : 502
    this.onError(new Refusal(status, message))
  }

  finish() {
    this.onEnd()
  }
}

/** Run one turn; returns a function that leaves it. */
function run(asked, names, handlers) {
  const mine = appServer()
  let thread = null
  let left = false
  let over = false
  const close = () => { over = true; if (thread) mine.turns.delete(thread) }
  const turn = new Turn(names, {
    single: asked.single,
    onText: (item, text) => over || handlers.onText(item, text),
    onEnd: () => {
      if (over) return
      leave()
      handlers.onEnd(turn)
    },
    onError: (error) => {
      if (over) return
      close()
      handlers.onError(error)
    },
  })
  function leave() {
    if (left) return
    left = true
    const running = !over && thread
    close()
    if (running && !defects.has('no-interrupt')) mine.call('turn/interrupt', { threadId: thread, turnId: '0' }).catch(() => {})
    const result = { output: 'The client runs this tool.', success: false }
    setTimeout(() => turn.open.forEach((id) => mine.write({ id, result })), 50)
  }
  turn.finish = () => {
    if (over) return
    if (turn.calls.length) return turn.onEnd()
    close()
    handlers.onEnd(turn)
  }
  mine.ready
    .then(() => mine.call('thread/start', asked.opening, (result) => {
      thread = result.thread.id
      if (!over) mine.turns.set(thread, turn)
      mine.newest = turn
    }))
    .then(() => {
      if (left) return
      if (defects.has('two-calls')) mine.call('sendUserMessage', { conversationId: thread, items: asked.v1 }).catch(() => {})
      return mine.call('turn/start', { threadId: thread, ...asked.turn })
    })
    .catch((error) => turn.onError(error))
  return leave
}

// -- the request -----------------------------------------------------------------------------------------------------------

const plain = (content) => (Array.isArray(content) ? content.map((part) => part.text ?? '').join('\n') : content ?? '')

function gather(messages, chat) {
  const input = []
  const system = []
  const say = (text) => input.push({ type: 'text', text })
  const calls = !defects.has('lost-input') || chat
  for (const each of messages) {
    if (each.type === 'function_call') calls && say(`[call ${each.call_id}] ${each.name} ${each.arguments}`)
    else if (each.type === 'function_call_output' && calls) {
      say(`[output of ${each.call_id}] ${plain(each.output)}`)
      const shown = Array.isArray(each.output) ? each.output.filter((part) => part.image_url !== undefined) : []
      for (const part of shown) input.push({ type: 'image', url: part.image_url })
    } else if (each.type === 'function_call_output') continue
    else if (each.role === 'tool') say(`[output of ${each.tool_call_id}] ${plain(each.content)}`)
    else if (each.role === 'system' || each.role === 'developer') system.push(plain(each.content))
    else {
      const parts = Array.isArray(each.content) ? each.content : [{ text: each.content ?? '' }]
      for (const part of parts) {
        if (part.image_url === undefined) say(`[${each.role}] ${part.text}`)
        else if (calls) input.push({ type: 'image', url: part.image_url.url ?? part.image_url })
      }
      for (const one of each.tool_calls ?? []) say(`[call ${one.id}] ${one.function.name} ${one.function.arguments}`)
    }
  }
  return { input, system }
}

function understand(body, chat) {
  if (chat && (body.n ?? 1) !== 1) throw new Refusal(400, 'n can only be 1.', 'n')
  if (body.previous_response_id) throw new Refusal(400, 'previous_response_id is not supported.', 'previous_response_id')
  const given = chat ? body.messages : body.input
  if (given === undefined) throw new Refusal(400, 'There is no prompt.')
  const messages = typeof given === 'string' ? [{ role: 'user', content: given }] : given
  const { input, system } = gather(messages, chat)
  const developer = [...(chat && !KEEPS_SYSTEM ? [] : system), ...(body.instructions ? [body.instructions] : [])]
  // Codex always sends the tool choice `auto`, so the instructions name the choice.
  const choice = body.tool_choice?.function?.name ?? body.tool_choice?.name ?? body.tool_choice
  if (body.tools?.length && choice && !['auto', 'none'].includes(choice)) developer.push(`Tool choice: ${choice}.`)
  const format = chat ? body.response_format : body.text?.format
  if (format?.type === 'json_object') developer.push('Answer with one JSON object.')
  // Codex takes only functions; a tool of another type is left out.
  const declared = body.tool_choice === 'none' ? [] : body.tools ?? []
  const tools = declared.filter((tool) => tool.type === 'function').map((tool) => tool.function ?? tool)
  const dynamicTools = tools.map((t) => ({ name: t.name, description: t.description ?? '', inputSchema: t.parameters ?? {} }))
  const opening = {
    model: body.model ?? MODELS[0], cwd: CWD, approvalPolicy: POLICY, sandbox: 'read-only', experimentalRawEvents: true,
    ephemeral: true, developerInstructions: developer.length ? developer.join('\n\n') : null,
    ...(tools.length ? { dynamicTools } : {}),
    ...(defects.has('unknown-members') ? { parallelToolCalls: true } : {}),
  }
  const schema = defects.has('no-schema') ? undefined : (chat ? format?.json_schema : format)?.schema
  const effort = chat ? body.reasoning_effort : body.reasoning?.effort
  const turn = { input, ...(schema ? { outputSchema: schema } : {}), ...(effort ? { effort } : {}) }
  const v1 = input.filter((item) => item.type === 'text').map((item) => ({ type: 'text', data: { text: item.text } }))
  return { opening, turn, v1, single: body.parallel_tool_calls === false, names: new Set(tools.map((tool) => tool.name)) }
}

// -- the answers -----------------------------------------------------------------------------------------------------------

class Chat {
  head = { id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000) }
  content = ''

  constructor(body, write) {
    this.head.model = body.model
    this.wantsUsage = body.stream_options?.include_usage
    this.write = write
  }

  chunk(delta, finish_reason = null) {
    this.write(`data: ${JSON.stringify({ ...this.head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason }] })}\n\n`)
  }

  begin() { this.chunk({ role: 'assistant', content: '' }) }
  text(item, text) { this.content += text; this.chunk({ content: text }) }

  end(turn) {
    this.tool_calls = turn.calls.map((c) => ({ id: c.call_id, type: 'function', function: { name: c.name, arguments: c.arguments } }))
    this.tool_calls.forEach((one, index) => this.chunk({ tool_calls: [{ index, ...one }] }))
    this.reason = turn.calls.length ? 'tool_calls' : 'stop'
    this.chunk({}, this.reason)
    const { inputTokens: i, outputTokens: o, totalTokens: t } = turn.usage ?? { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
    this.usage = { prompt_tokens: i, completion_tokens: o, total_tokens: t }
    if (this.wantsUsage) {
      this.write(`data: ${JSON.stringify({ ...this.head, object: 'chat.completion.chunk', choices: [], usage: this.usage })}\n\n`)
    }
    this.write('data: [DONE]\n\n')
  }

  fail(error) { this.write(`data: ${JSON.stringify({ error: { message: error.message, type: 'server_error' } })}\n\n`) }

  whole() {
    const message = { role: 'assistant', content: this.content, ...(this.tool_calls.length ? { tool_calls: this.tool_calls } : {}) }
    return { ...this.head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: this.reason }], usage: this.usage }
  }
}

class Response {
  head = { id: `resp_${randomUUID()}`, object: 'response', created_at: Math.floor(Date.now() / 1000), error: null }
  output = []
  sequence = 0
  item = null

  constructor(body, write) {
    this.head.model = body.model
    this.write = write
  }

  event(type, fields) {
    this.write(`event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.sequence++, ...fields })}\n\n`)
  }

  begin() { this.event('response.created', { response: { ...this.head, status: 'in_progress', output: [] } }) }

  text(id, text) {
    if (this.item !== id) {
      this.closeItem()
      this.item = id
      this.output.push({ type: 'message', id: `msg_${randomUUID()}`, role: 'assistant', status: 'in_progress', content: [] })
      this.event('response.output_item.added', { output_index: this.output.length - 1, item: { ...this.output.at(-1) } })
      this.output.at(-1).content = [{ type: 'output_text', text: '', annotations: [] }]
      this.part('response.content_part.added', { part: { type: 'output_text', text: '', annotations: [] } })
    }
    this.output.at(-1).content[0].text += text
    this.part('response.output_text.delta', { delta: text })
  }

  part(type, fields) {
    this.event(type, { item_id: this.output.at(-1).id, output_index: this.output.length - 1, content_index: 0, ...fields })
  }

  closeItem() {
    if (this.item === null) return
    this.item = null
    const item = this.output.at(-1)
    item.status = 'completed'
    this.part('response.output_text.done', { text: item.content[0].text })
    this.part('response.content_part.done', { part: item.content[0] })
    this.event('response.output_item.done', { output_index: this.output.length - 1, item })
  }

  end(turn) {
    this.closeItem()
    for (const call of turn.calls) {
      const item = { type: 'function_call', id: `fc_${randomUUID()}`, call_id: call.call_id, name: call.name, arguments: '', status: 'in_progress' }
      const output_index = this.output.push(item) - 1
      this.event('response.output_item.added', { output_index, item })
      this.event('response.function_call_arguments.delta', { item_id: item.id, output_index, delta: call.arguments })
      this.event('response.function_call_arguments.done', { item_id: item.id, output_index, arguments: call.arguments })
      Object.assign(item, { arguments: call.arguments, status: 'completed' })
      this.event('response.output_item.done', { output_index, item })
    }
    const { inputTokens: i, outputTokens: o, totalTokens: t } = turn.usage ?? { inputTokens: 0, outputTokens: 0, totalTokens: 0 }
    this.final = { ...this.head, status: 'completed', output: this.output, usage: { input_tokens: i, output_tokens: o, total_tokens: t } }
    this.event('response.completed', { response: this.final })
  }

  fail(error) {
    const told = { code: 'server_error', message: error.message }
    this.event('response.failed', { response: { ...this.head, status: 'failed', output: this.output, error: told } })
  }

  whole() { return this.final }
}

// -- HTTP --------------------------------------------------------------------------------------------------------------------

function send(response, status, value) {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}

const refuse = (response, { status = 500, message, param = null }) =>
  send(response, status, { error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param, code: null } })

async function serve(request, response) {
  response.setHeader('x-request-id', randomUUID())
  if (request.headers.origin) response.setHeader('access-control-allow-origin', '*')
  if (request.method === 'OPTIONS') {
    const allowed = { 'access-control-allow-methods': 'GET, POST', 'access-control-allow-headers': 'authorization, content-type' }
    return response.writeHead(204, allowed).end()
  }
  const chunks = []
  for await (const piece of request) chunks.push(piece)
  const path = request.url.split('?')[0]
  if (path === '/healthz') return send(response, 200, { status: 'ok' })
  const [scheme, ...key] = (request.headers.authorization ?? '').split(' ')
  if (scheme.toLowerCase() !== 'bearer' || key.join(' ') !== env.PROXY_API_KEY) throw new Refusal(401, 'Give the right bearer.')
  if (request.method === 'GET' && path === '/v1/models') {
    return send(response, 200, { object: 'list', data: MODELS.map((id) => ({ id, object: 'model' })) })
  }
  const chat = path === '/v1/chat/completions'
  if (!chat && path !== '/v1/responses') throw new Refusal(404, 'There is nothing here.')
  let body
  try {
    body = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks)))
  } catch {
    throw new Refusal(400, 'The body is not JSON.')
  }
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new Refusal(400, 'The body is not an object.')
  const asked = understand(body, chat)
  const shape = new (chat ? Chat : Response)(body, (data) => body.stream && response.write(data))
  let begun = false
  const begin = () => {
    if (begun) return
    begun = true
    if (body.stream) response.writeHead(200, { 'content-type': 'text/event-stream' })
    shape.begin()
  }
  const leave = run(asked, asked.names, {
    onText: (item, text) => { begin(); shape.text(item, text) },
    onEnd: (turn) => {
      begin()
      shape.end(turn)
      if (body.stream) response.end()
      else send(response, 200, shape.whole())
    },
    onError: (error) => {
      if (!begun || !body.stream) return refuse(response, error)
      shape.fail(error)
      response.end()
    },
  })
  response.on('close', leave)
}

appServer()
createServer((request, response) => serve(request, response).catch((error) => refuse(response, error))).listen(Number(env.PORT), '127.0.0.1')
