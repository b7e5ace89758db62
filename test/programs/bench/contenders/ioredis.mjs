import { Redis } from 'ioredis';

/** One connection per server, ready before anything is measured. */
export async function connect(urls) {
  const clients = urls.map((url) => new Redis(url, { lazyConnect: true }));
  await Promise.all(clients.map((client) => client.connect()));
  return clients;
}

export async function disconnect(clients) {
  await Promise.all(clients.map((client) => client.quit()));
}
