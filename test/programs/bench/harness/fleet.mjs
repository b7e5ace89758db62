import { now } from './clock.mjs';

/** ms for the word to reach everybody before they begin. */
const HEAD_START = 15;

/** Worker processes of one runtime, which stay for the whole run, so that all contenders run in processes equally warm. */
export class Fleet {
  workers = [];

  /** @param Worker what a process of this fleet is started by */
  constructor(Worker) {
    this.Worker = Worker;
  }

  /** The first `count` of them, as many as it takes. */
  crew(count) {
    this.workers = this.workers.filter(({ ended }) => !ended);
    while (this.workers.length < count) this.workers.push(new this.Worker(this));
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
