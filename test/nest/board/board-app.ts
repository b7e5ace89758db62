import { type DynamicModule, type INestApplication, Module, type Type } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { LockBoardModule, type LockBoardOptions } from '../../../lib/board/index.js';
import { LockModule, type LockModuleOptions } from '../../../lib/index.js';

export interface BoardAppOptions {
  locks: LockModuleOptions | readonly LockModuleOptions[];
  board?: LockBoardOptions;
  platform?: 'express' | 'fastify';
  imports?: (Type | DynamicModule)[];
  /** Before it listens. */
  prepare?: (app: INestApplication) => void;
}

@Module({})
class NothingModule {}

/** An application with a board, which listens. */
export async function startBoard({ locks, board, platform, imports = [], prepare }: BoardAppOptions) {
  const instances = Array.isArray(locks) ? (locks as LockModuleOptions[]) : [locks as LockModuleOptions];
  const module = await Test.createTestingModule({
    imports: [
      NothingModule,
      ...instances.map((options) => LockModule.forRoot(options)),
      LockBoardModule.forRoot({ interval: 200, ...board }),
      ...imports,
    ],
  }).compile();
  const app =
    platform === 'fastify'
      ? module.createNestApplication(new FastifyAdapter())
      : module.createNestApplication();
  prepare?.(app);
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
}
