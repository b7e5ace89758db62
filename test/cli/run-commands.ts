import { readFileSync } from 'node:fs';
import type { LockService } from '../../lib/index.js';
import type { RedisServer } from '../support/redis-server.js';
import { until } from '../scenarios/until.js';
import { type Running, start } from './command-line.js';

/** Starts commands under locks of a server. */
export interface RunCommands {
  runs(name: string, options: readonly string[], ...command: string[]): Running;
  shell(name: string, script: string, ...options: string[]): Running;
}

export function runCommands({ url }: Pick<RedisServer, 'url'>): RunCommands {
  const runs: RunCommands['runs'] = (name, options, ...command) =>
    start(['run', name, '--url', url, ...options, '--', ...command]);
  return { runs, shell: (name, script, ...options) => runs(name, options, 'sh', '-c', script) };
}

export const says = (running: Running, text: string): Promise<void> =>
  until(() => running.stdout().includes(text));

/** Not ended, and no zombie that nothing has waited for. */
export function isRunning(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${String(pid)}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}

/** What a script has printed as `pid 123`, or with another word. */
export const pidIn = (text: string, word = 'pid'): number =>
  Number(new RegExp(`${word} (\\d+)`).exec(text)?.[1]);

/** Holders have a label, and are told of a forced release, from their first second on. */
export const isKnown = (locks: LockService, name: string): Promise<void> =>
  until(async () => (await locks.inspect(name))?.holders[0]?.label !== undefined);

/** Messages reach the holder, which begins to listen after a second. */
export const isReached = (locks: LockService, name: string, server: RedisServer): Promise<void> =>
  until(async () => {
    const owner = (await locks.inspect(name))?.holders[0]?.owner ?? '';
    const [, count] = await server
      .client()
      .pubsub('NUMSUB', `lock_queue__channel:${owner.replace(/:\d+$/, '')}`);
    return Number(count) > 0;
  });
