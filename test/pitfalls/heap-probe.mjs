// Prints the heap in use, in bytes, after each of three rounds of 10,000 locks with names of their own: a process for
// itself, because in a test's own much else is allocated. Started by module.spec.ts with --expose-gc.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { LockService } from 'nestjs-distributed-lock';

Logger.overrideLogger(false);

const [connection, way] = process.argv.slice(2);
const locks = new LockService({ connection });
const use = (name) =>
  way === 'using' ? locks.using(name, () => undefined) : locks.acquire(name, { leaseTime: 200 });

const heap = [];
for (let round = 0; round < 3; round++) {
  for (let batch = 0; batch < 100; batch++) {
    const names = Array.from({ length: 100 }, (_, n) => [round, batch, n].join('-'));
    await Promise.all(names.map(use));
  }
  while (locks.leases().length > 0) await sleep(10);
  globalThis.gc();
  heap.push(process.memoryUsage().heapUsed);
}
console.log(JSON.stringify(heap));
await locks.onApplicationShutdown();
