// ai-sdk-provider-codex-cli 1.4.1: the language model of its createCodexAppServer.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { main } from './kit.mjs';

const open = async (job, ask) => {
  const { createCodexAppServer } = await import(
    pathToFileURL(createRequire(`${job.modules}/package.json`).resolve('ai-sdk-provider-codex-cli'))
  );
  const provider = createCodexAppServer({
    defaultSettings: {
      codexPath: job.codex,
      cwd: job.cwd,
      minCodexVersion: '0.92.0',
      approvalPolicy: 'untrusted',
      sandboxPolicy: 'danger-full-access',
      logger: false,
      serverRequests: {
        onCommandExecutionApproval: async ({ params }) => ({ decision: ask('command', params?.command) }),
        onFileChangeApproval: async ({ params }) => ({ decision: ask('file change', params?.reason) }),
      },
    },
  });
  const model = provider(job.model);
  return {
    start: async () => ({ id: undefined }),
    resume: async (id) => ({ id }),
    idOf: (thread) => thread.id,
    close: () => model.client.dispose(),
    turn: async (thread, prompt, { image, interrupt } = {}) => {
      const content = [{ type: 'text', text: prompt }];
      if (image) content.push({ type: 'file', mediaType: 'image/png', data: job.image });
      const stop = new AbortController();
      const options = thread.id ? { threadId: thread.id } : { threadMode: 'persistent' };
      let text = '';
      const kinds = new Set();
      let end = {};
      try {
        const { stream } = await model.doStream({
          prompt: [{ role: 'user', content }],
          abortSignal: stop.signal,
          providerOptions: { 'codex-app-server': options },
        });
        for await (const part of stream) {
          kinds.add(part.type);
          if (part.type === 'text-delta') text += part.delta;
          if (part.type === 'error') end.error = String(part.error?.message ?? part.error);
          if (part.type === 'finish') {
            thread.id = part.providerMetadata?.['codex-app-server']?.threadId ?? thread.id;
            end.status = part.finishReason;
          }
          const started = part.type === 'stream-start' || part.type === 'response-metadata';
          if (interrupt && started) setTimeout(() => stop.abort(), 300);
        }
      } catch (error) {
        end.error = `${error?.name}: ${error?.message}`;
      }
      return { text, ...end, events: [...kinds].sort() };
    },
  };
};

await main(open, { 'dynamic tool': 'the client declares no tools' });
