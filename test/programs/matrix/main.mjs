// Usage: npm run matrix -- [--server <text>]… [--node <major>]… [--turn <number>] [--unpack] [-- <arguments for Jest>]
//
// Runs the tests on each server that a release of Debian carries, with this Node, and on each other Node with this machine's
// server. `--unpack` only gets them. `--server` (`redis-trixie`, `valkey-trixie`, `valkey-sid`, or a part of
// these) and `--node` choose among them; `--turn` takes one of the servers, another for each number.
import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { parseArgs } from 'node:util';
import { runtime } from './runtimes.mjs';
import { KEYS, obstacle, server } from './servers.mjs';

const NODES = ['22', '24'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: 'string', multiple: true },
    node: { type: 'string', multiple: true },
    turn: { type: 'string' },
    unpack: { type: 'boolean' },
  },
});

const asksForAll = values.server === undefined && values.node === undefined;
const chosen = KEYS.filter((key) => asksForAll || values.server?.some((text) => key.includes(text)));
const inTurn = values.turn === undefined ? chosen : [chosen[Number(values.turn) % chosen.length]];
const majors = values.node ?? (asksForAll && values.turn === undefined ? NODES : []);

const stages = [];
const reason = inTurn.length > 0 ? obstacle() : undefined;
if (reason === undefined) for (const key of inTurn) stages.push(await server(key));
else console.log(`No other server can run here: ${reason}`);
for (const major of majors) stages.push(runtime(major));

const failed = [];
for (const { title, bin } of values.unpack ? [] : stages) {
  console.log(`\n== ${title}`);
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) };
  const program = ['--experimental-vm-modules', '--no-warnings', 'node_modules/jest/bin/jest.js'];
  const { status } = spawnSync('node', [...program, ...positionals], { stdio: 'inherit', env });
  if (status !== 0) failed.push(title);
}
if (failed.length > 0) console.log(`\nFailed on ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
