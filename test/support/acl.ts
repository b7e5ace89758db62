import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';

const PAGE = readFileSync(new URL('../../docs/guide/production.md', import.meta.url), 'utf8');

/** What the guide says that a user needs: key patterns, channel patterns and commands. */
export const LEAST_PRIVILEGES: readonly string[] = (
  /ACL SETUSER locks on >password ([^`]+)/.exec(PAGE)?.[1] ?? ''
)
  .trim()
  .split(/\s+/);

/** What comes on top on Redis Cluster. */
export const CLUSTER_PRIVILEGES: readonly string[] = (
  /ACL SETUSER locks (\+cluster[^`]+)/.exec(PAGE)?.[1] ?? ''
)
  .trim()
  .split(/\s+/);

/** Makes a user who may do that, and nothing else. */
export async function createLeastUser(
  redis: Redis,
  username = 'locks',
  privileges: readonly string[] = LEAST_PRIVILEGES,
): Promise<{ username: string; password: string }> {
  await redis.acl('SETUSER', username, 'reset', 'on', '>word', ...privileges);
  return { username, password: 'word' };
}
