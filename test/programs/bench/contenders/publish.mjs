import { connect, disconnect } from './ioredis.mjs';

/**
 * One message from who leaves to the only one who waits, and nothing that keeps a lock correct.
 * @param again whoever hears it takes the key by a command of its own, as where a release wakes and does not hand over
 */
export async function open({ urls, ttl, again = false }) {
  const clients = await connect([...urls, ...urls]);
  const [client, listener] = clients;
  let wake;
  listener.on('message', () => wake());
  const take = async (name) => (await client.set(name, 'taken', 'PX', ttl, 'NX')) !== null;
  return {
    lock: async (name) => {
      const heard = new Promise((resolve) => (wake = resolve));
      await listener.subscribe(name);
      if (!(await take(name))) {
        await heard;
        if (again && !(await take(name))) throw new Error('somebody else was faster');
      }
      await listener.unsubscribe(name);
      return async () => {
        const freed = again && client.del(name);
        const listening = await client.publish(name, 'next');
        await freed;
        // Else the key stays, for whoever has heard it.
        if (listening === 0) await client.del(name);
      };
    },
    close: () => disconnect(clients),
  };
}
