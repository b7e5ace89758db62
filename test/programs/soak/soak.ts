import { availableParallelism } from 'node:os';
import { setTimeout } from 'node:timers/promises';
import { serverVersion } from '../../support/redis-server.js';
import { evening } from './evening.js';
import { Report } from './report.js';
import { Restarts } from './restarts.js';
import { figuresOf, startServer } from './server.js';
import { Shop } from './shop.js';

export interface SoakOptions {
  readonly minutes: number;
  /** Buyers in a second. */
  readonly rate: number;
  readonly shops: number;
  /** s between restarts of the server. */
  readonly restart: number;
  /** s between looks. */
  readonly look: number;
  /** Whether the shops leak on purpose. */
  readonly leak: boolean;
}

/** An evening lasts a second: the buyers come in this part of it, and the last ones wait in line. */
const BUYING = 800;

/** Where evenings before have taken longer, which is made up for. */
const HURRY = 600;

/** Among the buyers, ms after the first. */
const STRIKE = 400;

export async function soak(options: SoakOptions, tell: (line: string) => void): Promise<Report> {
  const report = new Report(options, {
    node: process.versions.node,
    server: /^(\S+ server v=\S+)/.exec(serverVersion())?.[1]?.replace(' server v=', ' ') ?? 'a server',
    cores: availableParallelism(),
  });
  const server = await startServer();
  const shops: Shop[] = [];
  try {
    while (shops.length < options.shops) shops.push(await Shop.open(server.url, options.leak));
    const restarts = new Restarts(server, options.restart);
    const begun = performance.now();
    const seconds = () => (performance.now() - begun) / 1_000;
    let looked = 0;
    for (let number = 0; seconds() < options.minutes * 60; number++) {
      const early = begun + number * 1_000 - performance.now();
      if (early > 0) await setTimeout(early);
      const restart = restarts.isDue(seconds()) ? restarts.strike(seconds(), STRIKE) : undefined;
      const result = await evening(shops, options.rate, early > -1_000 ? BUYING : HURRY);
      await restart;
      restarts.taken(result.taken);
      report.add(result);
      if (shops.some(({ hasEnded }) => hasEnded)) {
        report.fail('A shop has ended');
        break;
      }
      if (seconds() - looked < options.look) continue;
      looked = seconds();
      const looks = await Promise.all(shops.map((shop) => shop.look()));
      report.look(looked, looks, await figuresOf(server));
      tell(report.line);
    }
    report.end(seconds(), restarts.list);
    return report;
  } finally {
    await Promise.all(shops.map((shop) => shop.stop()));
    await server.stop();
  }
}
