import { afterEach, beforeEach, expect, it } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { LockService } from 'nestjs-distributed-lock';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { until } from '../../test/scenarios/until.js';
import { AppModule } from '../src/app.module.js';
import { MemorySeatStore } from '../src/tickets/memory-seat-store.js';
import { SeatStore } from '../src/tickets/seat-store.js';
import { TraceTree } from './trace-tree.js';

const LOCK = 'show:tonight';

/** The payment of the first buyer goes on until the second one waits. */
class SlowSeatStore extends MemorySeatStore {
  isPaid = false;

  override async setSold(count: number): Promise<void> {
    await until(() => this.isPaid);
    await super.setSold(count);
  }
}

let app: INestApplication;
let tree: TraceTree;

beforeEach(async () => {
  tree = new TraceTree();
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [tree] }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
});

afterEach(async () => {
  await app.close();
  for (const api of [trace, context, propagation]) api.disable();
});

/** What the instrumentation of an HTTP server does: a span for each request, in the trace of its client. */
function traceRequest(request: IncomingMessage, response: ServerResponse, next: () => void): void {
  const { method = '', url = '', headers } = request;
  const parent = propagation.extract(context.active(), headers);
  trace.getTracer('http').startActiveSpan(`${method} ${url}`, {}, parent, (span) => {
    response.once('finish', () => {
      span.end();
    });
    next();
  });
}

/** What the instrumentation of an HTTP client does. */
async function post(url: string): Promise<number> {
  const headers: Record<string, string> = {};
  propagation.inject(context.active(), headers);
  return (await fetch(url, { method: 'POST', headers })).status;
}

it('shows in a trace which request waits for which, as the page on telemetry has it', async () => {
  const store = new SlowSeatStore();
  const module = await Test.createTestingModule({ imports: [AppModule.forRoot()] })
    .overrideProvider(SeatStore)
    .useValue(store)
    .compile();
  app = module.createNestApplication();
  app.use(traceRequest);
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/buy`;
  const locks = app.get(LockService);

  await trace.getTracer('shop').startActiveSpan('two buyers', async (span) => {
    const first = post(url);
    await until(() => locks.leases().length > 0);
    const second = post(url);
    await until(async () => (await locks.inspect(LOCK))?.waiters.local === 1);
    store.isPaid = true;
    expect([await first, await second]).toEqual([201, 201]);
    await until(() => tree.ended('POST /buy') === 2);
    span.end();
  });

  const drawn = tree.draw();
  process.stdout.write(`${drawn}\n`);
  const page = readFileSync(new URL('../../docs/guide/telemetry.md', import.meta.url), 'utf8');
  const [, shown] = /```text\n(two buyers.*?)\n```/s.exec(page) ?? [];
  expect(drawn).toBe(shown);
});
