import { fork } from 'node:child_process';
import { once } from 'node:events';
import { Calls } from './calls.mjs';

const WORKER = new URL('worker.mjs', import.meta.url);

/** A process of Node's, in which contenders run one after another. */
export class NodeWorker {
  calls = new Calls();
  ended = false;

  constructor(fleet) {
    this.child = fork(WORKER, { execArgv: ['--expose-gc', '--no-warnings'] });
    this.child.on('message', ({ id, result, error, news }) => {
      if (news !== undefined) fleet.relay(this, news);
      else if (error === undefined) this.calls.resolve(id, result);
      else this.calls.reject(id, error);
    });
    this.child.on('exit', () => {
      this.ended = true;
      this.calls.end('The worker has ended');
    });
  }

  call(call, ...args) {
    return this.calls.ask(call, (id) => this.send({ id, call, args }));
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
