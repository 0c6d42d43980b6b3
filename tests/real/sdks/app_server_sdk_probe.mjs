// Drive an app-server with the npm package ai-sdk-provider-codex-cli and print all that it reports, as JSON.
//
// Standard input: {"modules", "codex", "cwd", "tool", "answer", "prompts": [[prompt, decision], ...]}; a prompt without a decision
// resumes the first thread, each other one starts a thread of its own. The package declares no dynamic tools, although it answers
// their calls: "tool" is added to what its client sends with thread/start. Each thread has a server of its own, since the package
// takes a turn of a second thread for one of the first: the server counts turns by thread.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const job = JSON.parse(readFileSync(0, 'utf8'));
const name = 'ai-sdk-provider-codex-cli';
const main = createRequire(`${job.modules}/package.json`).resolve(name);
const { createCodexAppServer } = await import(pathToFileURL(main));
const installed = JSON.parse(readFileSync(`${job.modules}/node_modules/${name}/package.json`, 'utf8'));

let asked = [];
let decision = 'decline';
const ask = (kind, answer) => async (request) => {
  asked.push([kind, request.params]);
  return answer();
};

const clients = [];
const start = () => {
  const provider = createCodexAppServer({
    defaultSettings: {
      codexPath: job.codex,
      cwd: job.cwd,
      minCodexVersion: '0.92.0',
      approvalPolicy: 'untrusted',
      sandboxPolicy: 'danger-full-access',
      requestTimeoutMs: 30000,
      logger: false,
      threadMode: 'stateless',
      serverRequests: {
        onCommandExecutionApproval: ask('command', () => ({ decision })),
        onFileChangeApproval: ask('file change', () => ({ decision })),
        onDynamicToolCall: ask('tool', () => job.answer),
      },
    },
  });
  const model = provider('gpt-5.2-codex');
  const { client } = model;
  clients.push(client);
  const threadStart = client.threadStart.bind(client);
  client.threadStart = (params) => threadStart({ ...params, dynamicTools: [job.tool] });
  return model;
};

const turns = [];
let first;
const firstModel = start();
try {
  for (const [prompt, wanted] of job.prompts) {
    decision = wanted ?? 'decline';
    asked = [];
    const options = !first ? { 'codex-app-server': { threadMode: 'persistent' } } : wanted ? {} : { 'codex-app-server': { threadId: first } };
    const model = wanted && first ? start() : firstModel;
    const { stream } = await model.doStream({
      prompt: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
      providerOptions: options,
    });
    const events = [];
    let text = '';
    let thread;
    for await (const part of stream) {
      if (part.type === 'text-delta') text += part.delta;
      if (part.type === 'finish') thread = part.providerMetadata?.['codex-app-server']?.threadId;
      events.push(part);
    }
    first ??= thread;
    turns.push({ text, same: thread === first, asked, events });
  }
} finally {
  for (const client of clients) await client.dispose();
}
process.stdout.write(JSON.stringify({ version: installed.version, turns }));
