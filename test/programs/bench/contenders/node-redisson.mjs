import redisson from 'node-redisson';

export async function open({ urls: [url], ttl }) {
  const { hostname, port } = new URL(url);
  const client = new redisson.Redisson({
    redis: { options: { host: hostname, port: Number(port) } },
    lockWatchdogTimeout: BigInt(ttl),
  });
  await client.redis.ping();
  const acquire = async (name) => {
    const lock = client.getLock(name);
    await lock.lock();
    return () => lock.unlock();
  };
  return { lock: acquire, hold: acquire, close: () => client.quit() };
}
