import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { RedisCluster, type RedisClusterOptions } from './redis-cluster.js';
import { RedisServer, type RedisServerOptions } from './redis-server.js';

/** Servers that the hooks of a group start and stop: to be asked for behind the environment whose services use them. */
interface Startable {
  open(): Promise<void>;
  stop(): Promise<void>;
}

function forAll<Started extends Startable>(started: Started): Started {
  beforeAll(() => started.open());
  afterAll(() => started.stop());
  return started;
}

function forEach<Started extends Startable>(started: Started): Started {
  beforeEach(() => started.open());
  afterEach(() => started.stop());
  return started;
}

/** One server for all tests. */
export const serverOfAll = (options?: RedisServerOptions) => forAll(new RedisServer(options));

/** A new server for each test. */
export const serverOfEach = (options?: RedisServerOptions) => forEach(new RedisServer(options));

/** One cluster for all tests. */
export const clusterOfAll = (options?: RedisClusterOptions) => forAll(new RedisCluster(options));

/** A new cluster for each test. */
export const clusterOfEach = (options?: RedisClusterOptions) => forEach(new RedisCluster(options));
