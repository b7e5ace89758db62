import { describe, expect, it } from '@jest/globals';
import type { Term } from '../../lib/index.js';
import { inWorld, type Stage, type WorldProcess } from '../world/index.js';

interface Led {
  readonly process: string;
  readonly term: number;
  readonly from: number;
  to: number;
}

/** Lets all of these lead as often as they can, and notes from when to when each was told that it leads. */
function campaign({ now, until }: Stage, all: readonly WorldProcess[]): Led[] {
  const terms: Led[] = [];
  for (const { name, locks } of all) {
    void locks.getElection('job').run(async (term: Term) => {
      const led = { process: name, term: term.number, from: now(), to: Infinity };
      terms.push(led);
      term.signal.addEventListener('abort', () => (led.to = now()));
      await until(() => term.signal.aborted);
    });
  }
  return terms;
}

const isOrdered = (terms: readonly Led[]) =>
  terms.every(({ from, term }, n) => n === 0 || (from >= terms[n - 1]!.to && term > terms[n - 1]!.term));

describe('Elections', () => {
  it('One leader, the old leader is told first, and terms only grow: beside crashes, pauses, losses and a server that comes back empty', () =>
    inWorld(1, async (stage) => {
      const { process, server, pass, until } = stage;
      const options = { leaseTime: 3_000 };
      const all = [process(options), process(options), process(options)];
      const terms = campaign(stage, all);
      const leader = () => all.find(({ name }) => name === terms.at(-1)?.process)!;
      const next = async (change: () => void) => {
        const count = terms.length;
        change();
        await until(() => terms.length > count);
        await pass(200);
      };
      await until(() => terms.length === 1);
      await next(() => {
        leader().pause(6_000);
      });
      await next(() => void leader().locks.forceRelease('job'));
      await next(() => {
        server.crash();
        server.restart({ empty: true });
      });
      const dead = leader();
      await next(() => {
        terms.at(-1)!.to = stage.now();
        dead.crash();
      });
      expect(terms).toHaveLength(5);
      expect(isOrdered(terms)).toBe(true);
    }));

  it('A resignation hands over at once, and one term runs at a time in a process', () =>
    inWorld(2, async ({ process, now, pass, until }) => {
      const [a, b] = [process(), process()].map(({ locks }) => locks.getElection('job'));
      let running = 0;
      let led = 0;
      void a!.run(async (term) => {
        expect(++running).toBe(1);
        await until(() => term.signal.aborted);
        await pass(200);
        running--;
      });
      await until(() => a!.isLeader());
      const next = b!.run(() => (led = now()));
      await pass(1_000);
      const resigned = now();
      await a!.resign();
      await next;
      // Its callback takes 200 ms to end, and messages some more.
      expect(led - resigned).toBeLessThan(300);
      await until(() => a!.isLeader());
      expect(running).toBe(1);
    }));
});
