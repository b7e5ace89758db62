import { expect, it } from '@jest/globals';
import { TerminusModule } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { LockHealthIndicator } from 'nestjs-distributed-lock/health';
import { LockTestingModule } from 'nestjs-distributed-lock/testing';

// Of the two applications only this one has Terminus.
it('tells Terminus how the locks are', async () => {
  const imports = [TerminusModule, LockTestingModule.forRoot()];
  const app = await Test.createTestingModule({ imports, providers: [LockHealthIndicator] }).compile();
  expect(await app.get(LockHealthIndicator).isHealthy('locks')).toMatchObject({ locks: { status: 'up' } });
  await app.close();
});
