import 'reflect-metadata';
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { isLockAbortedError, isLockTimeoutError, LockModule, LockService } from 'nestjs-distributed-lock';

const [, , node, url] = process.argv;
assert.equal(process.version, `v${node}`);
const written = [];
console.log = (...parts) => written.push(parts.join(' '));

class AppModule {}
Module({ imports: [LockModule.forRoot({ connection: url })] })(AppModule);
const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
const locks = app.get(LockService);
const others = new LockService({ connection: url });

// Taken and contended.
const lease = await locks.acquire('oldest');
assert.ok(lease.fencingToken > 0);
await assert.rejects(others.acquire('oldest', { waitTime: 50 }), isLockTimeoutError);
assert.equal(await others.tryAcquire('oldest'), null);

// Aborted: while waiting, and with a signal that has a time of its own.
const controller = new AbortController();
const waiting = others.acquire('oldest', { signal: controller.signal, waitTime: 60_000 });
while ((await locks.inspect('oldest')).waiters.processes === 0) await new Promise(setImmediate);
controller.abort(new Error('enough'));
await assert.rejects(waiting, isLockAbortedError);
const signal = AbortSignal.any([AbortSignal.timeout(50)]);
await assert.rejects(
  others.using('oldest', { signal, waitTime: 60_000 }, () => undefined),
  isLockAbortedError,
);

// Disposed, and handed to who waits.
assert.equal(typeof Symbol.asyncDispose, 'symbol');
const next = others.acquire('oldest', { waitTime: 60_000 });
await lease[Symbol.asyncDispose]();
await (await next).release();
assert.equal(await locks.inspect('oldest'), null);

// Each kind once.
for (const lock of [
  locks.getFairLock('fair'),
  locks.getSemaphore('pool', 2),
  locks.getReadWriteLock('rw').read,
])
  assert.equal(await lock.using(() => 'done'), 'done');
await locks.using(['a', 'b'], () => undefined);
assert.equal((await locks.health()).status, 'up');

// What is about OpenTelemetry says that its peer is missing. Nothing else needs it.
const missing = (code) => (error) => error.code === code && error.message.includes('@opentelemetry/api');
await assert.rejects(import('nestjs-distributed-lock/otel'), missing('ERR_MODULE_NOT_FOUND'));
assert.throws(
  () => createRequire(import.meta.url)('nestjs-distributed-lock/otel'),
  missing('MODULE_NOT_FOUND'),
);

// This ioredis becomes ready with a password that was refused, where the default user needs none.
const stranger = new LockService({ connection: url.replace('redis://', 'redis://nobody:wrong@') });
const told = [];
stranger.events$.subscribe(({ type }) => told.push(type));
await assert.rejects(stranger.acquire('oldest', { waitTime: 60_000 }), { permanent: true });
await new Promise((resolve) => setTimeout(resolve, 1_000));
assert.deepEqual(told, ['disconnected']);
await stranger.onApplicationShutdown();

await app.close();
await others.onApplicationShutdown();
assert.deepEqual(written, []);
