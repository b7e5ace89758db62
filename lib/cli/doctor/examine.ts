import type { LockHealth } from '../../api/health.js';
import { onOneLine } from '../../runtime/text.js';
import type { LockService } from '../../module/lock-service.js';
import { stateOf } from '../../module/service-state.js';
import type { StoreWarning } from '../../store/store-health.js';
import type { Server } from '../../stores/redis/connection/deployment.js';
import { Failure } from '../command-failure.js';
import { EXIT } from '../exit-code.js';
import { duration } from '../output/text.js';
import { deadlockFindings } from './deadlocks.js';
import type { Finding } from './finding.js';
import { latencyOf, type Latency } from './latency.js';
import { nodeFindings } from './node-findings.js';
import { rightFindings, type UserContext } from './right-findings.js';

/** The findings by node, and those of all nodes together. */
export interface Examination {
  readonly status: LockHealth['status'];
  readonly latencies: ReadonlyMap<string, Latency>;
  readonly health: LockHealth;
  readonly findings: readonly Finding[];
}

/** ms by which the clocks of nodes may differ. */
const SPREAD = 1_000;

/** @throws Failure if no server answers: there is nothing to examine */
export async function examine(service: LockService, context: UserContext): Promise<Examination> {
  const health = await service.health();
  assertReached(health);
  const servers = new Map((await serversOf(service)).map((server) => [server.node, server]));
  const latencies = new Map<string, Latency>();
  const findings: Finding[] = [];
  // A server that is named twice is looked at once.
  for (const node of new Map(health.nodes.map((one) => [one.node, one])).values()) {
    const server = node.latency === undefined ? undefined : servers.get(node.node);
    const latency = server && (await latencyOf(server).catch(() => undefined));
    if (latency !== undefined) latencies.set(node.node, latency);
    findings.push(...nodeFindings(node, latency), ...settingFindings(node.node, health));
    if (server !== undefined) {
      const rights = rightFindings(server, context);
      findings.push(...(await rights.catch((error: unknown) => [unknownRights(node.node, error)])));
    }
  }
  findings.push(...spreadOf(health), ...charterOf(health));
  // What cannot be listed has been found above.
  findings.push(...(await deadlockFindings(service).catch(() => [])));
  return { status: health.status, latencies, health, findings };
}

function assertReached({ nodes }: LockHealth): void {
  if (nodes.some(({ latency }) => latency !== undefined)) return;
  const why = nodes.map(({ node, error = 'no answer' }) => `${node} ${error}`).join('; ');
  throw new Failure(`Redis cannot be used: ${onOneLine(why)}`, EXIT.unavailable);
}

/** The server has stopped to answer in the middle of it. */
const unknownRights = (node: string, error: unknown): Finding => ({
  level: 'warning',
  code: 'rights',
  node,
  message: `its rights could not be looked at: ${onOneLine(error instanceof Error ? error.message : String(error))}`,
  cure: 'Run doctor again when the server answers',
});

/** None if a cluster cannot be asked, which its health says. */
const serversOf = (service: LockService): Promise<readonly Server[]> =>
  stateOf(service)
    ?.servers()
    .catch(() => []) ?? Promise.resolve([]);

/** The warnings of the preflight about a node. */
function settingFindings(node: string, { nodes, warnings }: LockHealth): Finding[] {
  const own = warnings.filter((warning) => warning.node === node);
  const found: Finding[] = [...new Map(own.map((warning) => [warning.message, warning])).values()].map(
    asFinding,
  );
  const policy = nodes.find((one) => one.node === node)?.evictionPolicy;
  if (policy === 'noeviction')
    found.push({ level: 'ok', code: 'eviction-policy', node, message: 'it evicts no keys (noeviction)' });
  return found;
}

/** The first sentence is the fault, the next one the cure. */
function asFinding({ code, node, message }: StoreWarning): Finding {
  const [, what = message, cure = ''] = /^(.*?)\. ([^]*)$/.exec(message) ?? [];
  return { level: 'warning', code, node, message: what, cure };
}

/** The charter of a quorum, as its nodes have it. */
function charterOf({ charter }: LockHealth): Finding[] {
  if (charter === undefined) return [];
  const { id, longestLease, allowedLease } = charter;
  const message =
    `charter ${id.slice(0, 8)}: leases of up to ${duration(allowedLease)} may be given, and a node that has restarted does not vote for ` +
    duration(longestLease);
  return [{ level: 'ok', code: 'charter', node: undefined, message }];
}

function spreadOf({ nodes }: LockHealth): Finding[] {
  const offsets = nodes.map(({ clockOffset }) => clockOffset).filter((offset) => offset !== undefined);
  if (offsets.length < 2) return [];
  const spread = Math.max(...offsets) - Math.min(...offsets);
  const message = `the clocks of the nodes are ${duration(spread)} apart`;
  if (spread < SPREAD) return [{ level: 'ok', code: 'clocks', node: undefined, message }];
  const cure = 'Let NTP keep the clocks of all nodes: fencing tokens come from them';
  return [{ level: 'warning', code: 'clocks', node: undefined, message, cure }];
}
