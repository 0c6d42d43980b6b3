// An editor client in another language: node docs/examples/editor-client.mjs CODEX, driven as docs/editor-client.md has it.
// Two parts: what an editor plugin has anyway (Plugin), and the driver that wraps it (the end of the file).
import { spawn } from 'node:child_process'

const DECISIONS = { accept: 'accept', decline: 'decline', dismiss: 'cancel' }
const APPROVALS = { 'item/commandExecution/requestApproval': 'command', 'item/fileChange/requestApproval': 'fileChange' }
const snake = (name) => name.replace(/[A-Z]/g, (letter) => '_' + letter.toLowerCase())
const field = (object, name) => object?.[name] ?? object?.[snake(name)]

// Calls back with each line that is whole, as bytes are not characters: they are decoded when a line is.
function lines(stream, onLine, onEnd) {
  let pieces = []
  stream.on('data', (data) => {
    for (let at; (at = data.indexOf(10)) >= 0; data = data.subarray(at + 1)) {
      onLine(Buffer.concat([...pieces, data.subarray(0, at)]).toString())
      pieces = []
    }
    pieces.push(data)
  })
  stream.on('end', onEnd)
}

class Plugin {
  constructor(codex, show) {
    Object.assign(this, { codex, show, prompts: [], approvals: 0 })
    this.reset()
  }

  reset() {
    Object.assign(this, { server: null, ready: false, opening: false, thread: null, running: false, turn: null })
    Object.assign(this, { waiting: new Map(), asked: new Map(), ended: new Set(), shown: new Set(), interrupting: false, next: 1 })
  }

  start() {
    const server = spawn(this.codex, ['app-server'], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.server = server
    server.on('error', (error) => this.gone(server, `${this.codex} cannot be started: ${error.message}`))
    server.stdin.on('error', () => {})
    lines(server.stdout, (line) => this.server === server && this.line(line), () => {})
    server.on('close', (code, signal) => this.gone(server, `codex has ended (${signal ?? `exit status ${code}`}).`))
  }

  gone(server, why) {
    if (this.server !== server) return
    const failed = this.prompts.length + (this.running ? 1 : 0)
    this.prompts = []
    this.reset()
    this.show('error', { message: why })
    for (let i = 0; i < failed; i++) this.show('end', { status: 'failed' })
  }

  write(message) {
    this.server.stdin.write(JSON.stringify(message) + '\n')
  }

  request(method, params, then, failed) {
    this.waiting.set(this.next, { then, failed })
    this.write({ id: this.next++, method, params })
  }

  line(line) {
    let message
    try {
      message = JSON.parse(line)
    } catch {
      return
    }
    if (message === null || typeof message !== 'object') return
    if (message.method !== undefined) return message.id !== undefined ? this.requested(message) : this.notified(message)
    const asked = this.waiting.get(message.id)
    this.waiting.delete(message.id)
    if (asked) message.error ? asked.failed(String(message.error.message)) : asked.then(message.result)
  }

  // -- what the user does

  prompt(text) {
    this.prompts.push(text)
    this.advance()
  }

  advance() {
    if (this.prompts.length === 0 || this.running || this.opening) return
    const cannot = (why) => {
      this.opening = false
      this.show('error', { message: why })
      for (const _ of this.prompts.splice(0)) this.show('end', { status: 'failed' })
    }
    if (this.server === null) this.start()
    if (!this.ready) {
      this.opening = true
      const clientInfo = { name: 'editor-client-example', title: 'An example', version: '0.1.0' }
      this.request('initialize', { clientInfo }, () => {
        this.write({ method: 'initialized' })
        Object.assign(this, { ready: true, opening: false })
        this.advance()
      }, cannot)
    } else if (this.thread === null) {
      this.opening = true
      this.request('thread/start', { cwd: process.cwd(), sandbox: null }, (result) => {
        Object.assign(this, { thread: result.thread.id, opening: false })
        this.advance()
      }, cannot)
    } else {
      Object.assign(this, { running: true, turn: null, complaint: '' })
      const input = [{ type: 'text', text: this.prompts.shift() }]
      this.request('turn/start', { threadId: this.thread, input, cwd: process.cwd() }, (result) => this.begun(result?.turn?.id), (why) => {
        this.show('error', { message: why })
        this.end('failed')
      })
    }
  }

  begun(turn) {
    if (!this.running || this.ended.has(turn)) return
    this.turn = turn
    if (this.interrupting) this.interrupt()
  }

  interrupt() {
    if (!this.running && this.prompts.length === 0) return
    this.interrupting = this.turn === null
    const params = { threadId: this.thread, turnId: this.turn }
    if (!this.interrupting) this.request('turn/interrupt', params, () => {}, (why) => this.show('error', { message: why }))
  }

  decide(id, decision) {
    const request = this.asked.get(id)
    this.asked.delete(id)
    if (request) this.write({ id: request.id, result: { decision: DECISIONS[decision] } })
  }

  end(status) {
    if (!this.running) return
    this.ended.add(this.turn)
    Object.assign(this, { running: false, turn: null, interrupting: false })
    this.asked.clear()
    this.show('end', { status })
    this.advance()
  }

  async close() {
    const server = this.server
    if (server === null) return
    this.server = null
    const closed = new Promise((resolve) => server.on('close', resolve))
    server.stdin.end()
    const timers = [setTimeout(() => server.kill('SIGTERM'), 1000), setTimeout(() => server.kill('SIGKILL'), 2000)]
    await closed
    timers.forEach(clearTimeout)
  }

  // -- what the server says

  requested(message) {
    const kind = APPROVALS[message.method]
    if (!kind) return this.write({ id: message.id, error: { code: -32601, message: `Method not found: ${message.method}` } })
    this.asked.set(++this.approvals, message)
    const { reason = null, command = null } = message.params
    this.show('approval', { id: this.approvals, kind, reason, command })
  }

  notified({ method, params }) {
    const thread = field(params, 'threadId')
    if (thread !== undefined && thread !== this.thread) return
    switch (method) {
      case 'turn/started':
        return this.begun(params.turn.id)
      case 'item/agentMessage/delta':
        this.shown.add(field(params, 'itemId'))
        return this.show('text', { text: params.delta })
      case 'item/completed':
        if (params.item.type === 'agentMessage' && !this.shown.has(params.item.id)) this.show('text', { text: params.item.text })
        return
      case 'item/commandExecution/outputDelta':
      case 'item/fileChange/outputDelta':
        return this.show('output', { text: params.delta })
      case 'turn/diff/updated':
        return this.show('diff', { diff: params.diff })
      case 'turn/plan/updated':
        return this.show('plan', { steps: params.plan.map(({ step, status }) => ({ step, status })) })
      case 'error':
        return this.show('error', { message: params.error.message })
      case 'turn/completed':
        if (this.ended.has(params.turn.id)) return
        this.turn ??= params.turn.id
        if (params.turn.error) this.show('error', { message: params.turn.error.message })
        return this.end(params.turn.status)
    }
  }
}

// -- the driver

const show = (report, fields) => process.stdout.write(JSON.stringify({ report, ...fields }) + '\n')
const plugin = new Plugin(process.argv[2], show)
const leave = async () => {
  await plugin.close()
  process.exitCode = 0
  process.stdin.destroy()
}
lines(process.stdin, (line) => {
  const command = JSON.parse(line)
  if (command.do === 'prompt') plugin.prompt(command.text)
  else if (command.do === 'decide') plugin.decide(command.id, command.decision)
  else if (command.do === 'interrupt') plugin.interrupt()
  else if (command.do === 'shutdown') leave()
}, leave)
