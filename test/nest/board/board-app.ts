import { type DynamicModule, type INestApplication, Module, type Type } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Test } from '@nestjs/testing';
import { Board } from '../../../lib/board/board.js';
import { LockBoardModule, type LockBoardOptions } from '../../../lib/board/index.js';
import { LockModule, type LockModuleOptions } from '../../../lib/index.js';
import { certificate } from './certificate.js';

export interface BoardAppOptions {
  locks: LockModuleOptions | readonly LockModuleOptions[];
  board?: LockBoardOptions;
  /** `http2`: Fastify with HTTP/2 in clear text; `https2`: over TLS. */
  platform?: 'express' | 'fastify' | 'http2' | 'https2';
  imports?: (Type | DynamicModule)[];
  /** Before it listens. */
  prepare?: (app: INestApplication) => void;
}

@Module({})
class NothingModule {}

function adapterOf(platform: 'fastify' | 'http2' | 'https2'): FastifyAdapter {
  const options: object = {
    // Fastify takes a path with a slash at the end for another one, unless it is told so.
    fastify: { routerOptions: { ignoreTrailingSlash: true } },
    http2: { http2: true },
    https2: { http2: true, https: platform === 'https2' ? certificate() : {} },
  }[platform];
  return new FastifyAdapter(options);
}

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
    platform === undefined || platform === 'express'
      ? module.createNestApplication()
      : module.createNestApplication(adapterOf(platform));
  prepare?.(app);
  await app.listen(0, '127.0.0.1');
  const url = new URL(await app.getUrl());
  // Nest 11 does not see that Fastify has TLS.
  if (platform === 'https2') url.protocol = 'https:';
  return { app, url: url.origin };
}

/** The feed of the first LockService on the board. */
export const feedOf = (app: INestApplication) =>
  app.get(Board, { strict: false }).instance({ method: 'GET', url: '/', headers: {} }).feed;
