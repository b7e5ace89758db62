// One process of the fleet: opens a contender, and does a piece of work with it when its turn comes.
import { Counter } from './counter.mjs';
import { until } from './clock.mjs';

let client;
let counter;
const inbox = [];
let wake = () => undefined;

const peers = {
  /** Tells the other processes of this cast something. */
  tell: (news) => process.send({ news }),
  /** The next of what they tell. */
  hear: async () => {
    while (inbox.length === 0) await new Promise((resolve) => (wake = resolve));
    return inbox.shift();
  },
};

const calls = {
  async open({ module, options, counterFile }) {
    const contender = await import(`../contenders/${module}.mjs`);
    client = await contender.open(options);
    counter = new Counter(counterFile);
  },
  /** @param at when all processes of the cast begin */
  async play(work, params, at) {
    const { play } = await import(`../work/${work}.mjs`);
    inbox.length = 0;
    await until(at);
    const before = process.cpuUsage();
    const result = await play({ client, counter, peers, params });
    const { user, system } = process.cpuUsage(before);
    return { ...result, cpu: (user + system) / 1000 };
  },
  async close() {
    await client.close();
    counter.close();
  },
};

process.on('message', async ({ id, call, args, news }) => {
  if (news !== undefined) {
    inbox.push(news);
    wake();
    return;
  }
  try {
    process.send({ id, result: await calls[call](...args) });
  } catch (error) {
    process.send({ id, error: error.stack ?? String(error) });
  }
});
process.on('disconnect', () => process.exit());
// What a contender leaves behind when it has been closed is not to end the process under the next one.
process.on('unhandledRejection', () => undefined);
