import { onOneLine } from '../../runtime/text.js';
import type { Server } from '../../stores/redis/connection/deployment.js';
import type { Finding } from './finding.js';
import { CLUSTER_RIGHTS, type Right, RIGHTS, SHARDED_RIGHTS } from './rights.js';
import { refusedOf } from './try-rights.js';

export interface UserContext {
  readonly keyPrefix: string;
  readonly isCluster: boolean;
}

/** The missing rights of this connection's user, with their use and the rule that gives them. */
export async function rightFindings(
  server: Server,
  { keyPrefix, isCluster }: UserContext,
): Promise<Finding[]> {
  const user = await userOf(server);
  const lacks: Finding[] = [];
  const look = async (rows: readonly Right[], isOptional = false) => {
    for (const right of rows) {
      const refused = await refusedOf(server, right, keyPrefix);
      const missing = [...refused].filter(([, refusal]) => !isOptional || refusal.startsWith('NOPERM'));
      if (missing.length === 0) continue;
      const names = missing.map(([name]) => ownPattern(name, keyPrefix));
      lacks.push({
        level: right.level,
        code: 'acl',
        node: server.node,
        message: `${user} may not use ${names.join(', ')}: ${plain(right.without)}`,
        cure: `ACL SETUSER ${user} ${names.map(ruleOf).join(' ')}`,
      });
    }
  };
  await look(RIGHTS);
  if (isCluster) await look(CLUSTER_RIGHTS);
  if (isCluster) await look(SHARDED_RIGHTS, true);
  if (lacks.length > 0) return lacks;
  return [{ level: 'ok', code: 'acl', node: server.node, message: `${user} has all rights that locks need` }];
}

/** The user that the connection has, if it may ask; else the user that it was given. */
async function userOf(server: Server): Promise<string> {
  const given = await server.send((client) => Promise.resolve(client.options.username ?? 'default'));
  const name = await server.send((client) => client.call('ACL', 'WHOAMI')).catch(() => given);
  return typeof name === 'string' ? onOneLine(name) : given;
}

const ownPattern = (right: string, keyPrefix: string): string =>
  right.replace(/lock:\*$/, () => `${keyPrefix}*`);

const ruleOf = (right: string): string =>
  right.startsWith('~') ? right : /channel:|sharding/.test(right) ? `&${right}` : `+${right}`;

/** Markdown as a line of text. */
const plain = (markdown: string): string =>
  markdown.replaceAll('`', '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
