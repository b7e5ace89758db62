import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Logger } from '@nestjs/common';
import type { LockEvent, LockService } from '../../../lib/index.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { until } from '../until.js';

describe('Messages that any user of the server may send', () => {
  const environment = new TestEnvironment();
  const lines: string[] = [];
  const log = (text: unknown) => lines.push(String(text));
  let server: RedisServer;
  let locks: LockService;
  let events: LockEvent[];

  beforeAll(async () => {
    Logger.overrideLogger({ log, warn: log, error: log });
    server = await environment.server();
    locks = environment.service({ connection: server.url, leaseTime: 3_000 });
    events = [];
    locks.events$.subscribe((event) => events.push(event));
  });

  afterAll(async () => {
    await environment.end();
    Logger.overrideLogger(false);
  });

  it('neither end a hold nor forge a line, and count as no request where they cannot be read', async () => {
    await locks.using('a', async (lease) => {
      const { owner } = lease;
      const channel = `lock_queue__channel:${owner.slice(0, owner.lastIndexOf(':'))}`;
      await until(async () => (await server.client().publish(channel, 'news')) === 1);
      const asked = (request: object) => `lost ${owner} asked ${JSON.stringify(request)}`;
      const request = { id: '1', name: 'a', by: 'x', reason: 'r' };
      const texts = [
        ...[
          '',
          ' ',
          'lost',
          `lost ${owner}`,
          `lost ${owner} asked`,
          `lost ${owner} asked {`,
          `lost ${owner} asked 1`,
        ],
        ...[`lost ${owner} forced null`, `lost ${owner} forced {"by":7}`, `news ${owner} 1 2 3`],
        ...[
          { ...request, id: 1 },
          { ...request, by: null },
          { ...request, reason: 'r'.repeat(30_000) },
          { ...request, reason: 'r'.repeat(1_001) },
          { ...request, by: 'x'.repeat(1_001) },
        ].map(asked),
        asked({ ...request, by: 'x\n[Nest] all is well', reason: '\u001b[2J' }),
        asked({ ...request, by: 'twice' }),
      ];
      for (const text of texts) await server.client().publish(channel, text);
      await until(() => events.some(({ type }) => type === 'release-requested'));
      expect(events.filter(({ type }) => type === 'release-requested')).toHaveLength(1);
      expect(lease.held).toBe(true);
      await server.client().publish(channel, asked({ ...request, id: '2', by: 'last' }));
      await until(() => events.filter(({ type }) => type === 'release-requested').length === 2);
      const told = lines.filter((line) => line.startsWith('Asked to release'));
      expect(told).toEqual([
        String.raw`Asked to release the lock "a" (owner ${owner}) by "x\n[Nest] all is well": "\u001b[2J"`,
        `Asked to release the lock "a" (owner ${owner}) by "last": "r"`,
      ]);
      // A message that tells of a loss is believed only when the store says so.
      await server.client().publish(channel, `lost ${owner} forced {"by":"x"}`);
      await server.client().publish(channel, asked({ ...request, id: '3' }));
      await until(() => events.filter(({ type }) => type === 'release-requested').length === 3);
      await lease.extend(3_000);
      await server.client().del('lock:a');
      await until(() => lease.signal.aborted);
      expect(events).toContainEqual(expect.objectContaining({ type: 'lost', forced: undefined }));
    });
  });
});
