import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { contenderOf } from '../contenders.mjs';
import { Counter } from './counter.mjs';
import { Counts } from './counts.mjs';
import { Fleet } from './fleet.mjs';
import { JvmWorker } from './jvm-worker.mjs';
import { NodeWorker } from './node-worker.mjs';
import { Server } from './server.mjs';
import { Wire } from './wire.mjs';

/** Where contenders perform one after another: the same servers, the same processes. */
export class Stage {
  fleets = { node: new Fleet(NodeWorker), jvm: new Fleet(JvmWorker) };
  servers = [];
  wires = new Map();
  rehearsed = new Set();

  static async open() {
    const stage = new Stage();
    stage.directory = await mkdtemp(join(tmpdir(), 'lock-bench-'));
    stage.counterFile = join(stage.directory, 'counter');
    await writeFile(stage.counterFile, Buffer.alloc(8));
    stage.counter = new Counter(stage.counterFile);
    await stage.serversFor(1);
    return stage;
  }

  /** One contender in so many processes, from its connection to its end. */
  async perform(id, { processes = 1, nodes = 1, ttl = 10_000, fresh = false } = {}, act) {
    const { module, runtime, options } = contenderOf(id);
    const fleet = this.fleets[runtime];
    if (fresh) await fleet.stop();
    const servers = await this.serversFor(nodes);
    const crew = fleet.crew(processes);
    await Promise.all(servers.map(({ control }) => control.flushall()));
    const urls = servers.map(({ url }) => url);
    const open = { module, options: { urls, ttl, ...options }, counterFile: this.counterFile };
    let over = true;
    try {
      await Promise.all(crew.map((worker) => worker.call('open', open)));
      const cast = new Cast(this, fleet, crew, servers, this.wireOf(id));
      const sample = await act(cast);
      over = fresh || sample.unserved > 0;
      if (!over) await Promise.all(crew.map((worker) => worker.call('close')));
      return sample;
    } finally {
      // Whoever still waits or holds would go on under the next contender.
      if (over) await fleet.stop();
    }
  }

  /** Shows once which commands a contender's watchdog sends: with a lease so short that it renews at once. */
  async rehearse(id) {
    if (this.rehearsed.has(id)) return;
    this.rehearsed.add(id);
    await this.perform(id, { ttl: 1_500 }, async (cast) => {
      await cast.play('hold', { step: 'take', name: 'rehearsal', leases: 1 });
      await cast.warmUp('hold', { step: 'keep', time: 1_400 });
      await cast.warmUp('hold', { step: 'leave' });
      return {};
    });
  }

  async close() {
    await Promise.all(Object.values(this.fleets).map((fleet) => fleet.stop()));
    await Promise.all(this.servers.map((server) => server.stop()));
    this.counter.close();
    await rm(this.directory, { recursive: true });
  }

  async serversFor(count) {
    while (this.servers.length < count) this.servers.push(await Server.start());
    return this.servers.slice(0, count);
  }

  wireOf(id) {
    if (!this.wires.has(id)) this.wires.set(id, new Wire());
    return this.wires.get(id);
  }
}

class Cast {
  constructor(stage, fleet, crew, servers, wire) {
    this.stage = stage;
    this.fleet = fleet;
    this.crew = crew;
    this.servers = servers;
    this.wire = wire;
    this.counts = new Counts(servers);
  }

  /** What every process came back with. */
  async play(work, params) {
    return await this.fleet.play(this.crew, work, params);
  }

  /** Scripts loaded, subscriptions standing; and it shows which commands are sent. */
  async warmUp(work, params) {
    await this.wire.learn(this.servers[0], () => this.play(work, params));
  }

  /**
   * For so long that Node has compiled what is hot. What a process does before that is a scenario of its own. The quick run
   * times nothing.
   */
  async runWarm(work, params, { quick }) {
    if (!quick) await this.play(work, { ...params, time: 1_000 });
  }

  /** Plays once or several times, with the server's counts of all of it. */
  async measure(play) {
    const stepsBefore = this.stage.counter.read();
    await this.counts.reset();
    const acts = await play();
    const counts = await this.counts.read(this.wire);
    return { acts, counts, steps: this.stage.counter.read() - stepsBefore };
  }
}
