import assert from 'node:assert/strict';
import { NestFactory } from '@nestjs/core';
import { LockService } from 'nestjs-distributed-lock';
import { AppModule, Orders } from './app.js';

/** Boots on a real Redis, pays one order by twenty requests at once, and is refused what somebody else holds. */
async function main(): Promise<void> {
  const module = AppModule.forRoot({ connection: process.env['REDIS_URL']! });
  const app = await NestFactory.create(module, { logger: false });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const post = async (path: string) => {
    const response = await fetch(`${url}/orders/${path}`, { method: 'POST' });
    return { status: response.status, text: await response.text() };
  };

  const answers = await Promise.all(Array.from({ length: 20 }, () => post('a/pay')));
  for (const answer of answers) assert.deepEqual(answer, { status: 201, text: 'paid a' });
  assert.equal(app.get(Orders).most, 1);

  const locks = app.get(LockService);
  await locks.using('order:b', async (lease) => {
    assert.ok(lease.fencingToken > 0);
    assert.equal((await post('b/cancel')).status, 409);
    assert.equal((await post('c/cancel')).status, 201);
  });
  assert.equal((await locks.health()).status, 'up');
  assert.equal(await locks.inspect('order:a'), null);

  await locks.using('order:d', async () => {
    const page = await (await fetch(`${url}/locks`)).text();
    assert.match(page, />order:d<\/a>/);
    const [, script = ''] = /src="([^"]+)"/.exec(page) ?? [];
    assert.ok((await (await fetch(new URL(script, `${url}/locks`))).text()).length > 5_000);
  });
  await app.close();
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
