import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { commandClient, nodeName } from '../../../lib/stores/redis/connection/clients.js';
import { ServerConnection } from '../../../lib/stores/redis/connection/connection.js';
import { parseInfo, serverInfo } from '../../../lib/stores/redis/health/server-info.js';
import { TestEnvironment } from '../../support/test-environment.js';

describe('What a server says of itself', () => {
  const environment = new TestEnvironment();

  afterEach(async () => {
    jest.restoreAllMocks();
    await environment.end();
  });

  const connect = (url: string) => {
    const client = commandClient(url, 500);
    const connection = new ServerConnection(client, nodeName(client), 500, true);
    environment.add(() => connection.close());
    return connection;
  };

  it('is nothing where it may not be asked, and an error where it does not answer', async () => {
    const server = await environment.server();
    jest.spyOn(console, 'warn').mockImplementation(() => undefined); // ioredis misses INFO, too
    await server.client().call('ACL', 'SETUSER', 'app', 'on', '>word', '~*', '&*', '+@all', '-info');
    const forbidden = connect(server.url.replace('//', '//app:word@'));
    expect(await serverInfo(forbidden)).toEqual(parseInfo(''));
    const connection = connect(server.url);
    expect(await serverInfo(connection)).toMatchObject({ role: 'master', full: false });
    await server.kill();
    await expect(serverInfo(connection)).rejects.toThrow();
  });

  it('is nothing where the command does not exist', async () => {
    const server = await environment.server({ args: ['--rename-command', 'INFO', ''] });
    const client = new Redis(server.url, { enableReadyCheck: false });
    const connection = new ServerConnection(client, nodeName(client), 500, true);
    environment.add(() => connection.close());
    expect(await serverInfo(connection)).toEqual(parseInfo(''));
  });

  it('is whether it is a node of a cluster', () => {
    expect(parseInfo('cluster_enabled:1\r\n').inCluster).toBe(true);
    expect(parseInfo('cluster_enabled:0\r\n').inCluster).toBe(false);
  });

  it('is undefined where it is silent', () => {
    expect(parseInfo('')).toEqual({ refusesWrites: undefined, full: false, inCluster: false });
    expect(parseInfo('# Server\r\nrun_id:\r\nuptime_in_seconds:\r\n')).toMatchObject({ uptime: undefined });
  });

  it('is the version of Valkey, and not the one that it stands in for', () => {
    const text = 'redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n';
    expect(parseInfo(text).version).toBe('8.1.0');
  });

  it('is the version of Redis, and for how long it has been up', () => {
    expect(parseInfo('redis_version:7.2.4\r\nuptime_in_seconds:5\r\n')).toMatchObject({
      version: '7.2.4',
      uptime: 5_000,
    });
  });

  it('is how it keeps its data, and whether that fails', () => {
    const text = 'aof_enabled:1\r\nrdb_last_save_time:1700000000\r\nrdb_last_bgsave_status:ok\r\n';
    const persistence = { appendOnly: true, lastSave: 1_700_000_000_000, failing: false };
    expect(parseInfo(text).persistence).toEqual(persistence);
    expect(parseInfo('aof_enabled:0\r\n').persistence).toEqual({
      appendOnly: false,
      lastSave: undefined,
      failing: false,
    });
    for (const outcome of ['rdb_last_bgsave_status', 'aof_last_bgrewrite_status', 'aof_last_write_status']) {
      const failing = `aof_enabled:1\r\n${outcome}:err\r\n`;
      expect(parseInfo(failing).persistence).toMatchObject({ failing: true });
    }
  });

  it('is that it misses replicas, where it counts them and has none', () => {
    const good = (replicas: number) =>
      parseInfo(`role:master\r\nmin_slaves_good_slaves:${String(replicas)}\r\n`);
    expect(good(0).refusesWrites).toContain('misses the replicas');
    expect(good(1).refusesWrites).toBeUndefined();
  });

  it('is a role that we know, or none', () => {
    expect(parseInfo('role:slave\r\nslave_read_only:1\r\n')).toMatchObject({
      role: 'replica',
      refusesWrites: expect.stringContaining('replica'),
    });
    expect(parseInfo('role:slave\r\nslave_read_only:0\r\n')).toMatchObject({ refusesWrites: undefined });
    expect(parseInfo('role:active-replica\r\n')).toMatchObject({ role: undefined, refusesWrites: undefined });
  });

  it('is full when nothing may be evicted and what counts is over the limit', () => {
    const memory = (policy: string, uncounted: number) =>
      `used_memory:120\r\nmaxmemory:100\r\nmaxmemory_policy:${policy}\r\nmem_not_counted_for_evict:${String(uncounted)}\r\n`;
    expect(parseInfo(memory('noeviction', 0)).full).toBe(true);
    expect(parseInfo(memory('noeviction', 30)).full).toBe(false);
    // Exactly at the limit it still takes writes.
    expect(parseInfo(memory('noeviction', 20)).full).toBe(false);
    expect(parseInfo(memory('allkeys-lru', 0)).full).toBe(false);
    // Before Redis 4.0.10 everything counts.
    expect(parseInfo('used_memory:120\r\nmaxmemory:100\r\nmaxmemory_policy:noeviction\r\n').full).toBe(true);
    expect(parseInfo('used_memory:120\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n').full).toBe(false);
  });

  it('lists replicas that are still copying, too', () => {
    const text =
      'role:master\r\nmaster_repl_offset:500\r\n' +
      'slave0:ip=10.0.0.2,port=6379,state=online,offset=420,lag=1\r\n' +
      'slave1:ip=10.0.0.3,port=6379,state=wait_bgsave,offset=0,lag=0\r\n';
    expect(parseInfo(text).replicas).toEqual([
      { node: '10.0.0.2:6379', online: true, lag: 1_000, behind: 80 },
      { node: '10.0.0.3:6379', online: false, lag: 0, behind: 500 },
    ]);
    // A provider may hide addresses, and a replica may be ahead of a number that was written before.
    expect(
      parseInfo('role:master\r\nmaster_repl_offset:5\r\nslave0:state=online,offset=9\r\n').replicas,
    ).toEqual([{ node: '?:?', online: true, lag: undefined, behind: 0 }]);
    // Neither is known of a replica that has just come, nor of a master that does not tell.
    expect(parseInfo(text.replace(',offset=420', '')).replicas?.[0]).toMatchObject({ behind: undefined });
    expect(parseInfo(text.replace('master_repl_offset:500', '')).replicas?.[0]).toMatchObject({
      behind: undefined,
    });
  });
});
