import { fork } from 'node:child_process';
import { once } from 'node:events';
import { now } from './clock.mjs';

const WORKER = new URL('worker.mjs', import.meta.url);
/** ms after which somebody who has not answered never will. */
const LIMIT = 120_000;
/** ms for the word to reach everybody before they begin. */
const HEAD_START = 15;

/** Worker processes, which stay for the whole run, so that all contenders run in processes equally warm. */
export class Fleet {
  workers = [];

  /** The first `count` of them, as many as it takes. */
  crew(count) {
    this.workers = this.workers.filter(({ ended }) => !ended);
    while (this.workers.length < count) this.workers.push(new Worker(this));
    return this.workers.slice(0, count);
  }

  /** All at once, from behind one barrier. */
  async play(crew, work, params) {
    const at = now() + HEAD_START;
    return await Promise.all(
      crew.map((worker, index) => worker.call('play', work, { ...params, index }, at)),
    );
  }

  relay(from, news) {
    for (const worker of this.workers) if (worker !== from) worker.send({ news });
  }

  /** Ends all; new ones take their place when they are needed. */
  async stop() {
    await Promise.all(this.workers.splice(0).map((worker) => worker.stop()));
  }
}

class Worker {
  calls = new Map();
  ended = false;

  constructor(fleet) {
    this.child = fork(WORKER, { execArgv: ['--expose-gc', '--no-warnings'] });
    this.child.on('message', ({ id, result, error, news }) => {
      if (news !== undefined) {
        fleet.relay(this, news);
        return;
      }
      const { resolve, reject } = this.calls.get(id);
      this.calls.delete(id);
      if (error === undefined) resolve(result);
      else reject(new Error(error));
    });
    this.child.on('exit', () => {
      this.ended = true;
      for (const { reject } of this.calls.values()) reject(new Error('The worker has ended'));
    });
  }

  call(call, ...args) {
    const id = Math.random();
    const answer = new Promise((resolve, reject) => this.calls.set(id, { resolve, reject }));
    const limit = setTimeout(() => this.calls.get(id)?.reject(new Error(`${call}: no answer`)), LIMIT);
    this.send({ id, call, args });
    return answer.finally(() => clearTimeout(limit));
  }

  send(message) {
    // Somebody who has ended has no answer either; their exit says so.
    this.child.send(message, () => undefined);
  }

  async stop() {
    if (this.ended) return;
    const exit = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exit;
  }
}
