// Usage: npm run matrix -- [--server <text>]… [--node <major>]… [--turn <number>] [-- <arguments for Jest>]
//
// Runs the tests on each server that a release of Debian carries, with this Node, and on each other Node with this machine's
// server. `--server` (`redis-trixie`, `valkey-trixie`, `valkey-sid`, or a part of
// these) and `--node` choose among them; `--turn` takes one of the servers, another for each number.
import { spawnSync } from 'node:child_process';
import { delimiter } from 'node:path';
import { parseArgs } from 'node:util';
import { runtime } from './runtimes.mjs';
import { obstacle, servers } from './servers.mjs';

const NODES = ['22', '24'];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    server: { type: 'string', multiple: true },
    node: { type: 'string', multiple: true },
    turn: { type: 'string' },
  },
});

const stages = [];
const isAll = values.server === undefined && values.node === undefined;
const reason = obstacle();
if (reason !== undefined && (isAll || values.server !== undefined)) {
  console.log(`No other server can run here: ${reason}`);
} else if (isAll || values.server !== undefined) {
  stages.push(...(await servers((key) => values.server?.some((text) => key.includes(text)) ?? true)));
}
if (values.turn === undefined) {
  const majors = values.node ?? (values.server === undefined ? NODES : []);
  for (const major of majors) stages.push(runtime(major));
} else stages.splice(0, stages.length, ...stages.slice(Number(values.turn) % stages.length).slice(0, 1));

const failed = [];
for (const { title, bin } of stages) {
  console.log(`\n== ${title}`);
  const env = { ...process.env, PATH: [bin, process.env.PATH].join(delimiter) };
  const program = ['--experimental-vm-modules', '--no-warnings', 'node_modules/jest/bin/jest.js'];
  const { status } = spawnSync('node', [...program, ...positionals], { stdio: 'inherit', env });
  if (status !== 0) failed.push(title);
}
if (failed.length > 0) console.log(`\nFailed on ${failed.join(', ')}`);
process.exitCode = failed.length === 0 ? 0 : 1;
