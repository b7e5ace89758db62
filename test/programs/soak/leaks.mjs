// Preloaded into a shop by `--leak`: leaks of every kind that the program judges, so that it can be seen to find them.
import { connect } from 'node:net';
import { channel } from 'node:diagnostics_channel';
import { Redis } from 'ioredis';

const kept = [];
const { port } = new URL(process.env.REDIS_URL);
channel('http.server.request.start').subscribe(({ request }) => {
  // 4 KB of the heap and 16 KB outside of it with each purchase.
  if (request.url === '/buy') kept.push(new Array(512).fill(0.5), Buffer.alloc(16_384, 1));
});

const client = new Redis(process.env.REDIS_URL);
client.on('error', () => undefined);
/** It outlives a restart of the server. */
function open() {
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined).on('close', () => setTimeout(open, 200));
}

let count = 0;
setInterval(() => {
  count++;
  process.on('soak', () => undefined);
  setTimeout(() => undefined, 2 ** 30);
  client.set(`leak:${process.pid}:${count}`, 'x'.repeat(32_768)).catch(() => undefined);
  client.subscriber ??= client.duplicate();
  client.subscriber.subscribe(`leak:${process.pid}:${count}`).catch(() => undefined);
  open();
}, 1_000);
process.setMaxListeners(0);
