import { afterAll, afterEach, beforeAll } from '@jest/globals';
import type { INestApplication } from '@nestjs/common';
import { LockService } from '../../../lib/index.js';
import type { RedisServer } from '../../support/redis-server.js';
import { TestEnvironment } from '../../support/test-environment.js';
import { startBoard, type BoardAppOptions } from './board-app.js';

/** A Redis server for the tests of a file, and the applications of each test. */
export class BoardStage {
  readonly environment = new TestEnvironment();
  private started: RedisServer | undefined;
  private readonly apps: INestApplication[] = [];
  private readonly clients: (() => void)[] = [];

  constructor() {
    beforeAll(async () => {
      this.started = await this.environment.server();
    });
    afterEach(async () => {
      for (const end of this.clients.splice(0)) end();
      await this.close();
      await this.server.client().flushall();
    });
    afterAll(() => this.environment.end());
  }

  get server(): RedisServer {
    return this.started!;
  }

  /** An application with a board and with locks on the server. */
  async start(options: Partial<BoardAppOptions> = {}) {
    const locks = { connection: this.server.url, label: 'api-1' };
    const started = await startBoard({ locks, ...options });
    this.apps.push(started.app);
    return { ...started, locks: started.app.get(LockService) };
  }

  /** Runs after the test, before its applications close. */
  afterwards(end: () => void): void {
    this.clients.push(end);
  }

  /** Closes the applications. */
  async close(): Promise<void> {
    await Promise.all(this.apps.splice(0).map((app) => app.close()));
  }
}
