// @openai/codex-sdk 0.163.0: a process of `codex exec` for each turn.
import { pathToFileURL } from 'node:url';
import { main } from './kit.mjs';

const open = async (job) => {
  const { Codex } = await import(pathToFileURL(`${job.modules}/node_modules/@openai/codex-sdk/dist/index.js`));
  const codex = new Codex({ codexPathOverride: job.codex });
  const options = { workingDirectory: job.cwd, skipGitRepoCheck: true, sandboxMode: 'danger-full-access' };
  return {
    start: async () => codex.startThread(options),
    resume: async (id) => codex.resumeThread(id, options),
    idOf: (thread) => thread.id,
    close: () => {},
    turn: async (thread, prompt, { image, interrupt } = {}) => {
      const input = image ? [{ type: 'text', text: prompt }, { type: 'local_image', path: job.image_file }] : prompt;
      const stop = new AbortController();
      let text = '';
      let error = null;
      const kinds = new Set();
      try {
        const { events } = await thread.runStreamed(input, { signal: stop.signal });
        for await (const event of events) {
          kinds.add(event.type);
          if (interrupt && event.type === 'turn.started') stop.abort();
          if (event.type === 'item.completed' && event.item.type === 'agent_message') text += event.item.text;
          if (event.type === 'turn.failed') error = event.error.message;
        }
      } catch (raised) {
        error = `${raised.name}: ${raised.message}`.slice(0, 300);
      }
      return { text, error, events: [...kinds].sort() };
    },
  };
};

await main(open, { approvals: 'codex exec asks for none', 'dynamic tool': 'codex exec has none' });
