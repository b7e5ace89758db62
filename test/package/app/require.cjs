const assert = require('node:assert/strict');
const { LockService, isLockTimeoutError } = require('nestjs-distributed-lock');
const { passThroughLocks } = require('nestjs-distributed-lock/testing');

const loaded = () => Object.keys(require.cache).filter((file) => file.includes('@opentelemetry'));

async function main() {
  assert.equal(typeof passThroughLocks, 'function');
  const [one, two] = [1, 2].map(() => new LockService({ connection: process.env.REDIS_URL }));
  await one.using('required', async () => {
    await assert.rejects(two.acquire('required', { waitTime: 20 }), isLockTimeoutError);
  });
  assert.equal(await two.using('required', () => 'free'), 'free');
  await Promise.all([one, two].map((service) => service.onApplicationShutdown()));
  // OpenTelemetry is installed here, and is loaded only for what is about it.
  assert.deepEqual(loaded(), []);
  assert.equal(typeof require('nestjs-distributed-lock/otel').LockTelemetryModule.forRoot, 'function');
  assert.notDeepEqual(loaded(), []);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
