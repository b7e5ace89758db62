import type { PreloadedClock } from '../../../../../support/preloaded-clock.js';
import type { Session } from '../command.js';
import type { Lua } from '../lua.js';
import { RedisModel } from '../model.js';
import { Several } from '../replies.js';
import { encoded, type Protocol, pushed } from '../resp.js';
import { loadAll } from './own-scripts.js';
import { RealConnection } from './real.js';
import { BEGIN, LISTENERS, type Step } from './step.js';

/** Of each connection. */
const PROTOCOLS: readonly Protocol[] = [2, 3, 2];
const MARK = 'a mark';

export interface Difference {
  /** Of the step. */
  readonly index: number;
  readonly real: string;
  readonly model: string;
}

/** A client of the model. */
class ModelSession implements Session {
  name = '';
  ends = false;
  readonly channels = new Set<string>();
  readonly shardChannels = new Set<string>();
  messages = '';

  constructor(
    readonly id: number,
    public protocol: Protocol,
  ) {}

  push(items: Parameters<Session['push']>[0]): void {
    this.messages += pushed(items, this.protocol);
  }
}

/** A real server and the model, which are asked the same. */
export class Comparison {
  private constructor(
    private readonly port: number,
    private readonly clock: PreloadedClock,
    private readonly lua: Lua,
    private readonly admin: RealConnection,
  ) {}

  static async open(port: number, clock: PreloadedClock, lua: Lua): Promise<Comparison> {
    const admin = await RealConnection.open(port);
    // The server looks for keys that are over whenever it has time, and what is gone is gone if its clock steps back.
    await admin.ask(['DEBUG', 'SET-ACTIVE-EXPIRE', '0'], 1);
    return new Comparison(port, clock, lua, admin);
  }

  close(): void {
    this.clock.set(0);
    this.admin.close();
  }

  /** The first step that is answered in another way, with an empty server before it. */
  async differenceIn(steps: readonly Step[]): Promise<Difference | undefined> {
    let at = BEGIN;
    this.clock.set(at);
    const model = new RedisModel(this.lua, {
      micros: () => at,
      runId: 'model',
      uptime: () => 0,
      replicas: () => 0,
    });
    const sessions = PROTOCOLS.map((protocol, index) => new ModelSession(index, protocol));
    for (const command of [
      ['CONFIG', 'SET', 'maxmemory', '0'],
      ['FLUSHALL'],
      ['SCRIPT', 'FLUSH'],
      ...loadAll,
    ]) {
      await this.admin.ask(command, 1);
      model.execute(command, sessions[0]!);
    }
    const connections = await Promise.all(PROTOCOLS.map(() => RealConnection.open(this.port)));
    try {
      await Promise.all(connections.map((one, index) => one.ask(['HELLO', String(PROTOCOLS[index])], 1)));
      for (const [index, { connection, at: moment, command }] of steps.entries()) {
        at = moment;
        this.clock.set(at);
        const session = sessions[connection]!;
        const reply = model.execute(command, session);
        const replies = reply instanceof Several ? reply.pushes.length : 1;
        let expected = encoded(reply, session.protocol);
        let real = await connections[connection]!.ask(command, replies);
        for (const listener of LISTENERS) {
          const listening = sessions[listener]!;
          expected += `|${listening.messages}`;
          listening.messages = '';
          const answer = encoded(model.execute(['PING', MARK], listening), listening.protocol);
          real += `|${await connections[listener]!.until(['PING', MARK], answer)}`;
        }
        if (real !== expected) return { index, real, model: expected };
      }
      return undefined;
    } finally {
      for (const one of connections) one.close();
    }
  }
}
