import 'reflect-metadata';
import type { AddressInfo, Server } from 'node:net';
import { Logger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { guide } from './tickets/guide.js';

/** The loopback interface only, because any client that reaches this shop may reset it. */
const HOST = '127.0.0.1';
const { PORT = '3000', REDIS_URL } = process.env;

Logger.overrideLogger(['fatal', 'error', 'warn']);
const app = await NestFactory.create(AppModule.forRoot({ redisUrl: REDIS_URL, waitTime: 30_000 }));
app.enableShutdownHooks();
try {
  await app.listen(Number(PORT), HOST);
  const { port } = (app.getHttpServer() as Server).address() as AddressInfo;
  console.log(guide(`http://${HOST}:${String(port)}`));
  console.log(
    REDIS_URL ? 'Locks and seats are in Redis.' : 'Locks and seats are in memory (REDIS_URL is not set).',
  );
} catch (error) {
  const { code, message } = error as NodeJS.ErrnoException;
  const reason = code === 'EADDRINUSE' ? 'it is in use. Choose another, or 0 for any free one' : message;
  console.error(`Cannot listen on port ${PORT}: ${reason}`);
  process.exitCode = 1;
  await app.close();
}
