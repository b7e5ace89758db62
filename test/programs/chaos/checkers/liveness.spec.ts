import { describe, expect, it } from '@jest/globals';
import { history, hold, lagging, lossOfData, refused } from './histories.js';
import { liveness } from './liveness.js';
import { fenceOf, queueOf } from '../../../support/keys.js';

const bounds = { recovery: 3_000, prompt: 300, perDead: 0 };

describe('liveness', () => {
  it('finds a lock that is free while a caller waits', () => {
    expect(liveness(history([hold(0), hold(300, { invoked: 5 })]), bounds)).toEqual([]);
    expect(liveness(history([hold(0), hold(400, { invoked: 5 })]), bounds)).toHaveLength(1);
    // Nobody waited.
    expect(liveness(history([hold(0), hold(400)]), bounds)).toEqual([]);
  });

  it('finds a caller that waits until the end', () => {
    const unanswered = refused(20, 0);
    delete unanswered.answered;
    expect(liveness(history([hold(0), unanswered]), bounds)).toHaveLength(1);
  });

  it('finds a caller that waits until it is killed for not coming to an end', () => {
    const unanswered = refused(20, 0, { process: 'B' });
    delete unanswered.answered;
    const attempts = [hold(0), unanswered];
    const { processes } = history(attempts);
    processes.get('B')!.lastSeen = 9_900;
    expect(liveness(history(attempts, { processes }), bounds)).toHaveLength(1);
  });

  it('finds a lock that was free until a caller gave up', () => {
    const gaveUp = (answered: number) => [hold(0), refused(20, answered), hold(1_000)];
    expect(liveness(history(gaveUp(310)), bounds)).toEqual([]);
    expect(liveness(history(gaveUp(330)), bounds)).toHaveLength(1);
  });

  it('counts from the end of the last fault, and allows a lease then', () => {
    const faults = [lossOfData(0, 1_000)];
    const holds = (granted: number) => [hold(0), hold(granted, { invoked: 5 })];
    expect(liveness(history(holds(3_900), { faults, healed: 1_000 }), bounds)).toEqual([]);
    expect(liveness(history(holds(4_100), { faults, healed: 1_000 }), bounds)).toHaveLength(1);
  });

  it('allows for the time in which a process did not run', () => {
    const holds = [hold(0), hold(400, { invoked: 5 })];
    expect(liveness(history(holds, { processes: lagging('A', 50, 250) }), bounds)).toEqual([]);
  });

  it('allows for the time in which the server did not answer, and as much again', () => {
    const holds = (granted: number) => [hold(0), hold(granted, { invoked: 5 })];
    const server = { lags: [{ from: 50, to: 250 }] };
    expect(liveness(history(holds(700), { server }), bounds)).toEqual([]);
    expect(liveness(history(holds(720), { server }), bounds)).toHaveLength(1);
  });

  it('takes a long silence of the server for a fault, and allows a lease after it', () => {
    const holds = (granted: number) => [hold(0), hold(5_000), hold(granted, { invoked: 5_010 })];
    const server = { lags: [{ from: 100, to: 4_900 }] };
    expect(liveness(history(holds(8_000), { server }), bounds)).toEqual([]);
    expect(liveness(history(holds(8_100), { server }), bounds)).toHaveLength(1);
    // Not for a short one, nor for one that is long over.
    expect(
      liveness(history(holds(5_500), { server: { lags: [{ from: 4_700, to: 4_900 }] } }), bounds),
    ).toHaveLength(1);
    expect(
      liveness(history(holds(5_500), { server: { lags: [{ from: 100, to: 1_900 }] } }), bounds),
    ).toHaveLength(1);
  });

  it('allows for waiters that died, where each is told so', () => {
    const dead = refused(5, 0, { process: 'B', kind: 'fair' });
    delete dead.answered;
    const processes = new Map(lagging('A', 0, 0)).set('B', {
      ...lagging('B', 0, 0).get('B')!,
      lastSeen: 20,
    });
    const holds = [hold(0), dead, hold(1_000, { invoked: 5 })];
    expect(liveness(history(holds, { processes, healed: 100 }), { ...bounds, perDead: 1_000 })).toEqual([]);
    expect(liveness(history(holds, { processes, healed: 100 }), bounds)).toHaveLength(1);
  });

  it('allows for one entry of each process that died while it waited for a plain lock', () => {
    const dead = ['B', 'B', 'C'].map((process) => {
      const waiter = refused(5, 0, { process });
      delete waiter.answered;
      return waiter;
    });
    const gone = { ...lagging('B', 0, 0).get('B')!, lastSeen: 20 };
    const processes = new Map(lagging('A', 0, 0)).set('B', gone).set('C', gone);
    const found = (granted: number) =>
      liveness(history([hold(0), ...dead, hold(granted, { invoked: 5 })], { processes, healed: 100 }), {
        ...bounds,
        perDead: 1_000,
      });
    expect(found(2_250)).toEqual([]);
    expect(found(2_400)).toHaveLength(1);
  });

  it('finds what is left when all have gone', () => {
    const clean = { keys: [{ key: fenceOf('lock'), ttl: 1_000 }], channels: [], clients: 0, hanging: [] };
    const found = (left: object) => liveness(history([], { residue: { ...clean, ...left } }), bounds).length;
    expect(found({})).toBe(0);
    expect(found({ keys: [{ key: fenceOf('lock'), ttl: -1 }] })).toBe(1);
    expect(found({ keys: [{ key: queueOf('lock'), ttl: 1_000 }] })).toBe(1);
    expect(found({ channels: ['lock'] })).toBe(1);
    expect(found({ clients: 2 })).toBe(1);
    expect(found({ hanging: ['1.1'] })).toBe(1);
  });
});
