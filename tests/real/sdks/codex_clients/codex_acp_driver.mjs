// @agentclientprotocol/codex-acp 2.6.0: an agent of the Agent Client Protocol, as an editor starts it.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { main } from './kit.mjs';

const open = async (job, ask) => {
  const agent = `${job.modules}/node_modules/@agentclientprotocol/codex-acp/dist/index.js`;
  const child = spawn(process.execPath, [agent], {
    env: { ...process.env, CODEX_PATH: job.codex },
    cwd: job.cwd,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const waiting = new Map();
  let kinds = new Set();
  let text = '';
  let onUpdate = () => {};
  let last = 0;
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const call = (method, params) =>
    new Promise((resolve, reject) => {
      last += 1;
      waiting.set(last, [resolve, reject]);
      send({ id: last, method, params });
    });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.method === 'session/request_permission') {
      const { toolCall, options } = message.params;
      const wanted = ask(toolCall.kind ?? 'tool call', toolCall.title) === 'accept' ? 'allow_once' : 'reject_once';
      const option = options.find(({ kind }) => kind === wanted) ?? options.at(-1);
      send({ id: message.id, result: { outcome: { outcome: 'selected', optionId: option.optionId } } });
    } else if (message.method === 'session/update') {
      const { update } = message.params;
      kinds.add(update.sessionUpdate);
      if (update.sessionUpdate === 'agent_message_chunk') text += update.content.text ?? '';
      onUpdate(update);
    } else if (message.method && message.id !== undefined) {
      send({ id: message.id, error: { code: -32601, message: 'Method not found' } });
    } else if (waiting.has(message.id)) {
      const [resolve, reject] = waiting.get(message.id);
      if (message.error) reject(Object.assign(new Error(`${message.error.message} ${JSON.stringify(message.error.data ?? null)}`), { name: 'RequestError' }));
      else resolve(message.result);
    }
  });
  await call('initialize', { protocolVersion: 1, clientCapabilities: {} });
  return {
    start: async () => ({ id: (await call('session/new', { cwd: job.cwd, mcpServers: [] })).sessionId }),
    resume: async (id) => {
      await call('session/load', { sessionId: id, cwd: job.cwd, mcpServers: [] });
      return { id };
    },
    idOf: (thread) => thread.id,
    close: () => {
      child.stdin.end();
      child.kill();
    },
    turn: async (thread, prompt, { image, interrupt } = {}) => {
      [kinds, text] = [new Set(), ''];
      const content = [{ type: 'text', text: prompt }];
      if (image) content.push({ type: 'image', mimeType: 'image/png', data: job.image.split(',')[1] });
      const answer = call('session/prompt', { sessionId: thread.id, prompt: content });
      if (interrupt) setTimeout(() => send({ method: 'session/cancel', params: { sessionId: thread.id } }), 300);
      const { stopReason } = await answer;
      return { text, status: stopReason, events: [...kinds].sort() };
    },
  };
};

await main(open, { 'dynamic tool': 'the client declares no tools' });
