import 'reflect-metadata';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Controller, type INestApplication, Post } from '@nestjs/common';
import { ApiConflictResponse, ApiCreatedResponse, DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { Test } from '@nestjs/testing';
import { LockBoardModule } from '../../lib/board/index.js';
import { ApiLockResponses, DistributedLock, LockModule, LockService } from '../../lib/index.js';

@Controller('orders')
@ApiLockResponses()
class OrderController {
  @Post('payment')
  @DistributedLock('order', { waitTime: 0 })
  async pay(): Promise<string> {
    return await Promise.resolve('paid');
  }

  @Post('refund')
  @DistributedLock('order', { instance: 'away', waitTime: 0 })
  async refund(): Promise<string> {
    return await Promise.resolve('refund');
  }
}

@Controller('jobs')
class JobController {
  @Post('own')
  @DistributedLock('job')
  @ApiLockResponses()
  @ApiConflictResponse({ description: 'The job has run already' })
  @ApiCreatedResponse()
  async own(): Promise<string> {
    return await Promise.resolve('own');
  }

  @Post('plain')
  @DistributedLock('job')
  async plain(): Promise<string> {
    return await Promise.resolve('plain');
  }
}

interface Response {
  description: string;
  content?: { 'application/json': { schema: Schema } };
}
interface Schema {
  required: string[];
  properties: Record<string, { enum?: unknown[] }>;
}

describe('ApiLockResponses', () => {
  let app: INestApplication;

  beforeEach(async () => {
    const module = await Test.createTestingModule({
      imports: [
        LockModule.forRoot({ store: 'memory' }),
        LockModule.forRoot({ name: 'away', connection: 'redis://127.0.0.1:1', failFast: true }),
        LockBoardModule.forRoot(),
      ],
      controllers: [OrderController, JobController],
    }).compile();
    app = module.createNestApplication();
    app.useLogger(false);
    await app.listen(0, '127.0.0.1');
  });

  afterEach(async () => {
    await app.close();
  });

  const document = () => SwaggerModule.createDocument(app, new DocumentBuilder().build());
  const responses = (path: string) =>
    (document().paths[path]?.post?.responses ?? {}) as unknown as Record<string, Response>;

  it.each([
    [409, '/orders/payment'],
    [503, '/orders/refund'],
  ])('describes the body that a client gets with %i', async (status, path) => {
    const url = await app.getUrl();
    const answer = await app.get(LockService).using('order', async () => {
      const response = await fetch(`${url}${path}`, { method: 'POST' });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    });
    expect(answer.status).toBe(status);
    const { body } = answer;
    const schema = responses(path)[String(status)]?.content?.['application/json'].schema;
    expect(schema?.required.sort()).toEqual(Object.keys(body).sort());
    for (const [name, { enum: values = [body[name]] }] of Object.entries(schema?.properties ?? {}))
      expect(values).toContain(body[name]);
  });

  it('adds to what a handler describes, and leaves other handlers as they are', () => {
    expect(Object.keys(responses('/orders/payment'))).toEqual(['201', '409', '503']);
    expect(Object.keys(responses('/jobs/plain'))).toEqual(['201']);
    const own = responses('/jobs/own');
    expect(Object.keys(own)).toEqual(['201', '409', '503']);
    expect(own['409']?.description).toBe('The job has run already');
  });

  it('leaves the board out of the document', () => {
    expect(Object.keys(document().paths).filter((path) => path.includes('locks'))).toEqual([]);
  });
});
