import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { type CanActivate, type ExecutionContext, Injectable, Module, type Type } from '@nestjs/common';
import 'reflect-metadata';
import { pauseAfter } from '../../../lib/board/feed/pause.js';
import { takeSnapshot } from '../../../lib/board/feed/snapshot.js';
import { LockBoardModule, type LockBoardOptions } from '../../../lib/board/index.js';
import { stateOf } from '../../../lib/module/service-state.js';
import { until } from '../../scenarios/until.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { first } from '../../support/tier.js';
import type { BoardAppOptions } from './board-app.js';
import { BoardStage } from './board-stage.js';

const stage = new BoardStage();

@Injectable()
class Operators {
  readonly names = ['ada'];
}

@Module({ providers: [Operators], exports: [Operators] })
class OperatorsModule {}

/** Lets in what says its name in a header. */
@Injectable()
class OperatorGuard implements CanActivate {
  constructor(private readonly operators: Operators) {}

  canActivate(context: ExecutionContext): boolean {
    const { headers } = context.switchToHttp().getRequest<{ headers: Record<string, string> }>();
    return this.operators.names.includes(headers['x-operator'] ?? '');
  }
}

const WRITING: LockBoardOptions = {
  readOnly: false,
  guards: [OperatorGuard],
  imports: [OperatorsModule],
  actor: (request) => (request as { headers: Record<string, string> }).headers['x-operator'],
};

const ADA = { 'x-operator': 'ada' };

const start = (options: Partial<BoardAppOptions> = {}) => stage.start({ board: WRITING, ...options });

/** As the page sends it from a browser that tells the site, and from one that does not. */
const OWN = { 'x-board': 'page', 'sec-fetch-site': 'same-origin' };

const OLDER = { 'x-board': 'page' };

interface Sent {
  body?: unknown;
  headers?: Record<string, string>;
  action?: string;
}

const post = async (url: string, { body, headers = OWN, action = 'force' }: Sent) => {
  const response = await fetch(`${url}/locks/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...ADA, ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, answer: (await response.json()) as Record<string, unknown> };
};

const TYPED = { name: 'order:7', confirm: 'order:7', reason: 'it hangs' };

describe.each(first(1, ['express', 'fastify'] as const))('a board that may write, on %s', (platform) => {
  it('takes a lock away, and tells its holder by which operator and why', async () => {
    const { url } = await start({ platform });
    const holder = stage.environment.service({ connection: stage.server.url, label: 'worker-1' });
    const lease = await holder.acquire('order:7');
    expect(await post(url, { body: TYPED })).toEqual({ status: 200, answer: { released: true } });
    await until(() => lease.signal.aborted);
    expect(await post(url, { body: TYPED })).toEqual({ status: 200, answer: { released: false } });
  });

  it('asks for a lock of another process', async () => {
    const [one, two] = await Promise.all([start({ platform }), start({ platform })]);
    const lease = await one.locks.acquire('order:7');
    await until(async () => {
      const { status, answer } = await post(two.url, { body: TYPED, action: 'ask' });
      expect(status).toBe(200);
      return answer.asked === 1;
    });
    await until(() => lease.releaseRequested.aborted);
    expect(lease.held).toBe(true);
    expect((lease.releaseRequested.reason as Error).message).toContain('it hangs (ada, on the board)');
  });
});

/** The board with this option `actor`, and a lock that is held. */
async function acting(actor: unknown) {
  const started = await start({ board: { ...WRITING, actor: actor as () => string } });
  const lease = await started.locks.acquire('order:7');
  return { lease, ask: () => post(started.url, { body: TYPED, action: 'ask' }) };
}

it.each([
  ['a number', () => 42, 'it hangs (42, on the board)'],
  ['a great number', () => 2n ** 64n, 'it hangs (18446744073709551616, on the board)'],
  ['nothing', () => null, 'it hangs (on the board)'],
  ['spaces', () => Promise.resolve(' '), 'it hangs (on the board)'],
  ['a long name', () => 'x'.repeat(1_000), `it hangs (${'x'.repeat(200)}, on the board)`],
])('The option actor may give %s', async (_, actor, reason) => {
  const { lease, ask } = await acting(actor);
  expect(await ask()).toEqual({ status: 200, answer: { asked: 1 } });
  expect((lease.releaseRequested.reason as Error).message).toContain(`"${reason}"`);
});

it.each([
  ['an object', () => ({ name: 'ada' }), 'object'],
  ['a list', () => Promise.resolve(['ada']), 'object'],
  ['false', () => false, 'boolean'],
])('Where the option actor gives %s the answer says so, and no holder is asked', async (_, actor, found) => {
  const { lease, ask } = await acting(actor);
  const message = `The option actor of LockBoardModule has to give a text or a number (found: ${found})`;
  expect(await ask()).toMatchObject({ status: 500, answer: { message } });
  expect(lease.releaseRequested.aborted).toBe(false);
});

it.each<[string, (url: string) => Record<string, string>]>([
  ['a browser that tells the site', () => OWN],
  ['an older one', (origin) => ({ ...OLDER, origin })],
  ['an older one, by another name', (url) => ({ ...OLDER, origin: url.replace('[::1]', 'localhost') })],
  ['one in front of a proxy that ends TLS', (url) => ({ ...OLDER, origin: url.replace('http:', 'https:') })],
])('takes a request of %s', async (_, headersOf) => {
  const { url } = await start();
  expect((await post(url, { body: TYPED, headers: headersOf(url) })).status).toBe(200);
});

describe('what is refused', () => {
  it('a request of another site, or of none that is known, without the guard, or without the name typed', async () => {
    const { url, locks } = await start();
    const lease = await locks.acquire('order:7');
    const evil = 'https://evil.example';
    const refused: [number, Sent][] = [
      [403, { body: TYPED, headers: {} }],
      [403, { body: TYPED, headers: OLDER }],
      [403, { body: TYPED, headers: { 'sec-fetch-site': 'same-origin' } }],
      [403, { body: TYPED, headers: { origin: url } }],
      [403, { body: TYPED, headers: { ...OWN, 'sec-fetch-site': 'same-site' } }],
      [403, { body: TYPED, headers: { ...OWN, 'sec-fetch-site': 'cross-site', origin: url } }],
      [403, { body: TYPED, headers: { ...OWN, 'sec-fetch-site': 'none' } }],
      [403, { body: TYPED, headers: { ...OLDER, origin: evil } }],
      [403, { body: TYPED, headers: { ...OLDER, origin: `${url}0` } }],
      [403, { body: TYPED, headers: { ...OLDER, origin: 'null' } }],
      [403, { body: TYPED, headers: { ...OLDER, origin: evil, 'x-forwarded-host': 'evil.example' } }],
      [403, { body: TYPED, headers: { ...OLDER, origin: evil, forwarded: 'host=evil.example' } }],
      [403, { body: TYPED, headers: { ...OWN, 'x-operator': 'eve' } }],
      [400, { body: { ...TYPED, confirm: 'order:8' } }],
      [400, { body: { ...TYPED, reason: ' ' } }],
      [400, { body: { ...TYPED, reason: 'x'.repeat(501) } }],
      [400, { body: { ...TYPED, confirm: undefined } }],
      [400, { body: { ...TYPED, name: '', confirm: '' } }],
      [400, { body: { ...TYPED, name: 5, confirm: 5 } }],
      [400, { body: { ...TYPED, name: 'x'.repeat(1_025), confirm: 'x'.repeat(1_025) } }],
    ];
    for (const [status, sent] of refused) {
      const got = await post(url, sent);
      expect([sent, got.status]).toEqual([sent, status]);
      expect((await post(url, { ...sent, action: 'ask' })).status).toBe(status);
    }
    expect((await fetch(`${url}/locks/force`, { headers: ADA })).status).toBe(404);
    expect(lease.held).toBe(true);
    expect(lease.releaseRequested.aborted).toBe(false);
    expect((await post(url, { body: TYPED })).status).toBe(200);
  });

  it('every route without the guard', async () => {
    const { url } = await start();
    for (const path of ['', '/board.css', '/board.js', '/state', '/lock?name=a', '/events'])
      expect([path, (await fetch(`${url}/locks${path}`)).status]).toEqual([path, 403]);
  });

  it('writing on a board that only reads: it has no such routes', async () => {
    const { url } = await start({ board: {} });
    expect((await post(url, { body: TYPED })).status).toBe(404);
  });
});

it.each([
  [{ readOnly: false }, 'readOnly: false needs a guard'],
  [{ readOnly: false, guards: [] }, 'readOnly: false needs a guard'],
  [{ readOnly: 'no' }, 'readOnly: must be true or false (found: "no")'],
  [{ guards: [{}] }, 'guards: must be guards: classes, or objects with canActivate()'],
  [{ guards: OperatorGuard }, 'guards: must be guards'],
  [{ guards: [() => true] }, 'guards: must be guards'],
  [{ guards: [OperatorsModule] }, 'guards: must be guards'],
  ...['', '/', 'a b', '../x', './x', 'a//b', '//a', 'a?b', 'a#b', '*', 'é', 'a%20b', '{a'].map(
    (path) => [{ path }, 'path: must be a path below the root'] as const,
  ),
  [{ path: 5 }, 'path: must be a path below the root'],
  [{ instances: [] }, 'instances: must be different names of LockServices'],
  [{ instances: ['a', 'a'] }, 'instances: must be different names of LockServices'],
  [{ instances: ['default', 5] }, 'instances: must be different names of LockServices'],
  [{ limit: 0 }, 'limit: must be a whole number from 1 to 10000'],
  [{ interval: 199 }, 'interval: must be a whole number of milliseconds from 200 to'],
  [{ actor: 'ada' }, 'actor: must be a function of the request'],
  [{ imports: OperatorsModule }, 'imports: must be an array of modules'],
  [{ readonly: true }, 'readonly: is not an option of LockBoardModule.forRoot, did you mean readOnly?'],
])('forRoot refuses %j', (options, message) => {
  expect(() => LockBoardModule.forRoot(options as LockBoardOptions)).toThrow(
    expect.objectContaining({ code: 'LOCK_CONFIG', message: expect.stringContaining(message) }),
  );
});

it.each([
  ['a quick look: the interval', 100, false, 900],
  ['a look at a slow store: looks take a fifth of the time', 2_000, false, 8_000],
  ['a look in which the process has stood still for an hour: at most 20 s', 3_600_000, false, 20_000],
  ['a failed look: the interval', 100, true, 1_000],
  ['a failed look that took long: the interval', 60_000, true, 1_000],
])('the pause after %s', (_, took, hasFailed, pause) => {
  expect(pauseAfter(took, 1_000, hasFailed)).toBe(pause);
});

describe('a look of the board', () => {
  const environment = TestEnvironment.ofEach();

  it('shows since when callers of the process wait, also without an entry in the queue of the store', async () => {
    const locks = environment.service({ store: 'memory' });
    const look = async () =>
      (await takeSnapshot(stateOf(locks)!, 100, undefined, (name) => name)).locks.get('a');
    const lease = await locks.acquire('a');
    expect(await look()).toMatchObject({ waiting: 0, waitingSince: null });
    const before = Date.now();
    const first = locks.acquire('a');
    const after = Date.now();
    await sleep(200);
    const second = locks.acquire('a');
    const both = await look();
    expect(both?.waiting).toBe(2);
    // The wall clock and the clock of waits go on at different pace while the former is set right.
    expect(both?.waitingSince).toBeGreaterThanOrEqual(before - 50);
    expect(both?.waitingSince).toBeLessThanOrEqual(after + 50);
    await lease.release();
    const next = await first;
    const left = await look();
    expect(left?.waiting).toBe(1);
    expect(left?.waitingSince).toBeGreaterThanOrEqual(before + 150);
    await next.release();
    await (await second).release();
  });
});

it("the board's routes say to @nestjs/swagger that they are no part of an API", () => {
  const guard = { canActivate: () => true };
  const { controllers = [] } = LockBoardModule.forRoot({ readOnly: false, guards: [guard] });
  const excluded = controllers.map(
    (type: Type) =>
      // As its @ApiExcludeController() writes it.
      Reflect.getMetadata('swagger/apiExcludeController', type) as unknown,
  );
  expect(excluded).toEqual([[true]]);
});
