// Play every feature with one client and print what the client reports, as JSON: kit.py for the clients of npm.
//
// A driver gives `main` a function that opens a client: {start, resume, turn, idOf, close}.
import { readFileSync } from 'node:fs';

const UNKNOWN = '01a1fa4b-cfe6-7981-9efe-a552b8cdd4f3';
const SECONDS = 12;

const raised = (error) => ({ raised: error?.name ?? 'Error', message: String(error?.message ?? error).slice(0, 500) });
const within = (promise, limit = SECONDS) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`no end within ${limit} seconds`)), limit * 1000);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });

export async function main(open, lacks = {}) {
  const job = JSON.parse(readFileSync(0, 'utf8'));
  const features = {};
  let thread = job.resume;
  let asked = [];
  let decision = 'decline';
  const ask = (kind, what) => {
    asked.push([kind, what]);
    return kind === 'tool' ? job.answer : decision;
  };
  const caught = async (call) => {
    try {
      return await call();
    } catch (error) {
      return raised(error);
    }
  };
  const plays = {
    text: async (client) => {
      const started = await client.start();
      const outcome = await client.turn(started, '<text>');
      thread = client.idOf(started);
      return outcome;
    },
    'two turns': async (client) => {
      const started = await client.start();
      return [await client.turn(started, '<first>'), await client.turn(started, '<second>')];
    },
    approvals: async (client) => {
      const started = await client.start();
      const found = [];
      for (const [prompt, wanted] of [['<run>', 'accept'], ['<refuse>', 'decline'], ['<patch>', 'accept']]) {
        [asked, decision] = [[], wanted];
        found.push([await client.turn(started, prompt), asked]);
      }
      return found;
    },
    'dynamic tool': async (client) => [await client.turn(await client.start(), '<tool>'), asked],
    interrupt: async (client) => {
      const started = await client.start();
      return [await client.turn(started, '<held>', { interrupt: true }), await client.turn(started, '<after>')];
    },
    errors: async (client) => [
      await caught(async () => client.turn(await client.start(), '<fails>')),
      await caught(async () => client.turn(await client.resume(UNKNOWN), '<stranger>')),
    ],
    image: async (client) => client.turn(await client.start(), '<image>', { image: true }),
    resume: async (client) => {
      const resumed = await client.resume(job.resume);
      return { ...(await client.turn(resumed, '<again>')), same: client.idOf(resumed) === job.resume };
    },
  };
  for (const name of job.resume ? ['resume'] : Object.keys(plays).filter((name) => name !== 'resume')) {
    if (lacks[name]) {
      features[name] = { lacks: lacks[name] };
      continue;
    }
    asked = [];
    let client;
    try {
      client = await open(job, ask);
      features[name] = await within(plays[name](client));
    } catch (error) {
      features[name] = { ...raised(error), asked };
    } finally {
      await within(Promise.resolve(client?.close()), 5).catch(() => {});
    }
  }
  process.stdout.write(JSON.stringify({ features, thread }), () => process.exit(0));
}
