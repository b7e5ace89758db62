import 'reflect-metadata';
import { LockService } from '../../../dist/index.js';

/** @param kind `lock` or `fair` */
export function open({ urls, ttl, kind = 'lock', ...options }) {
  const where = urls.length > 1 ? { nodes: urls } : { connection: urls[0] };
  const service = new LockService({ ...where, leaseTime: ttl, ...options });
  const lockOf = (name) => (kind === 'fair' ? service.getFairLock(name) : service.getLock(name));

  const held = async (acquisition) => {
    const lease = await acquisition;
    return () => lease.release();
  };
  return {
    service,
    lock: (name) => held(lockOf(name).acquire()),
    hold: (name) => held(lockOf(name).acquire()),
    wait: (name) => held(lockOf(name).acquire({ waitTime: Infinity })),
    lockAll: (names) => held(service.acquire(names)),
    close: async () => {
      service.beforeApplicationShutdown();
      await service.onApplicationShutdown();
    },
  };
}
