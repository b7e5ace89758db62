import type { NodeHealth } from '../../store/store-health.js';
import { onOneLine } from '../../runtime/text.js';
import { duration } from '../output/text.js';
import type { Finding } from './finding.js';
import type { Latency } from './latency.js';

/** ms */
const FAR = { median: 20, p99: 200 };
const CLOCK = 1_000;
const REPLICA_LAG = 10_000;
const OLDEST = [6, 2];

/** What one server says of itself, without the warnings of the preflight. */
export function nodeFindings(health: NodeHealth, latency: Latency | undefined): Finding[] {
  const { node } = health;
  const good = (code: string, message: string): Finding => ({ level: 'ok', code, node, message });
  const bad = (level: 'warning' | 'error', code: string, message: string, cure: string): Finding => ({
    level,
    code,
    node,
    message,
    cure,
  });
  return [
    stateOf(health, good, bad),
    versionOf(health, good, bad),
    latencyFinding(latency, good, bad),
    clockOf(health, good, bad),
    persistenceOf(health, good, bad),
    ...replicasOf(health, good, bad),
  ].filter((finding) => finding !== undefined);
}

type Make = (code: string, message: string) => Finding;
type Blame = (level: 'warning' | 'error', code: string, message: string, cure: string) => Finding;

function stateOf({ status, error = '' }: NodeHealth, good: Make, bad: Blame): Finding {
  if (status === 'up') return good('state', 'locks of all kinds can be taken and kept');
  const cure = 'docs/troubleshooting/connections.md of the package explains each reason under "In health()"';
  const level = status === 'down' ? 'error' : 'warning';
  return bad(level, 'state', `${status}: ${onOneLine(error)}`, cure);
}

function versionOf(
  { version, role, uptime, latency }: NodeHealth,
  good: Make,
  bad: Blame,
): Finding | undefined {
  // A server that does not answer says nothing about rights.
  if (latency === undefined) return undefined;
  if (version === undefined)
    return bad('warning', 'info', 'the server does not tell its version, role and settings', 'allow INFO');
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldMajor = 0, oldMinor = 0] = OLDEST;
  if (major < oldMajor || (major === oldMajor && minor < oldMinor))
    return bad('error', 'version', `version ${version} is too old`, `Use Redis ${OLDEST.join('.')} or later`);
  const since = uptime === undefined ? '' : `, up for ${duration(uptime)}`;
  return good('version', `version ${version}, ${role ?? 'role unknown'}${since}`);
}

function latencyFinding(latency: Latency | undefined, good: Make, bad: Blame): Finding | undefined {
  if (latency === undefined) return undefined;
  const { median, p99, count } = latency;
  const message = `PING takes ${ms(median)} (median), ${ms(p99)} (p99 of ${String(count)})`;
  if (median < FAR.median && p99 < FAR.p99) return good('latency', message);
  const cure =
    'A lock costs two round trips. Run the application near Redis, and look for slow commands (SLOWLOG GET), swapping and a ' +
    'full CPU on its machine';
  return bad('warning', 'latency', message, cure);
}

const ms = (time: number): string => `${time.toFixed(1)} ms`;

function clockOf({ clockOffset }: NodeHealth, good: Make, bad: Blame): Finding | undefined {
  if (clockOffset === undefined) return undefined;
  const side = clockOffset < 0 ? 'behind' : 'ahead of';
  const message = `its clock is ${duration(Math.abs(clockOffset))} ${side} this machine's`;
  if (Math.abs(clockOffset) < CLOCK) return good('clock', message);
  const cure = 'Let NTP keep both clocks, so that ages here and times in logs fit together';
  return bad('warning', 'clock', message, cure);
}

function persistenceOf({ persistence }: NodeHealth, good: Make, bad: Blame): Finding | undefined {
  if (persistence === undefined) return undefined;
  if (persistence.failing)
    return bad(
      'error',
      'persistence',
      'it cannot save its data, and may refuse writes',
      'See the log of Redis',
    );
  if (persistence.appendOnly) return good('persistence', 'it logs its writes (appendonly yes)');
  const message = 'a restart forgets the locks that are held, and others take them (appendonly no)';
  return bad(
    'warning',
    'persistence',
    message,
    'Set appendonly to yes, or accept it: fencing tokens still grow',
  );
}

function replicasOf({ role, replicas = [] }: NodeHealth, good: Make, bad: Blame): Finding[] {
  if (role !== 'master') return [];
  const late = replicas.filter(({ online, lag = 0 }) => !online || lag > REPLICA_LAG);
  const count = `${String(replicas.length)} ${replicas.length === 1 ? 'replica' : 'replicas'}`;
  if (replicas.length === 0) return [good('replication', 'it has no replicas')];
  if (late.length === 0) return [good('replication', `${count}, in step`)];
  const names = late.map(({ node }) => node).join(', ');
  const message = `${names} of ${count} cannot follow: a failover may lose locks that are held`;
  return [
    bad(
      'warning',
      'replication',
      message,
      'See the log of the replica, and docs/guide/topologies/replication.md',
    ),
  ];
}
