import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { LockService } from '../../../../dist/index.js';

// Losses are counted, not told.
Logger.overrideLogger(false);

/** @param kind `lock` or `fair` */
export async function open({ urls, ttl, kind = 'lock', ...options }) {
  const where = urls.length > 1 ? { nodes: urls } : { connection: urls[0] };
  const service = new LockService({ ...where, leaseTime: ttl, ...options });
  let lost = 0;
  let counting;
  // Only where leases are held: an observer of all events costs each call, and the calls of the other libraries have none.
  const countLosses = () => {
    counting ??= service.events$.subscribe(({ type }) => {
      if (type === 'lost') lost++;
    });
  };
  // Connected, and done with what it asks of a server at first. A node of a quorum that is younger than the others does not
  // vote for a lease.
  while ((await service.health()).status !== 'up') await sleep(100);
  const lockOf = (name) => (kind === 'fair' ? service.getFairLock(name) : service.getLock(name));

  const held = async (acquisition) => {
    const lease = await acquisition;
    return () => lease.release();
  };
  return {
    service,
    losses: () => lost,
    lock: (name) => held(lockOf(name).acquire()),
    hold: (name) => {
      countLosses();
      return held(lockOf(name).acquire());
    },
    wait: (name) => held(lockOf(name).acquire({ waitTime: Infinity })),
    lockAll: (names) => held(service.acquire(names)),
    close: async () => {
      service.beforeApplicationShutdown();
      await service.onApplicationShutdown();
    },
  };
}
