import type { LockHealth } from '../../api/health.js';
import type { NodeHealth } from '../../store/store-health.js';
import type { BoardHealth, BoardNode } from './wire.js';

export const boardHealthOf = ({ status, nodes, warnings }: LockHealth): BoardHealth => ({
  status,
  nodes: nodes.map(nodeOf),
  warnings: warnings.map(({ code, node, message }) => ({ code, node, message })),
});

const nodeOf = (health: NodeHealth): BoardNode => ({
  node: health.node,
  status: health.status,
  latency: health.latency === undefined ? null : Math.round(health.latency * 10) / 10,
  error: health.error ?? null,
  notes: notesOf(health),
});

function notesOf({ version, role, replicas, subscriber, evictionPolicy, quarantine }: NodeHealth): string[] {
  const notes: string[] = [];
  if (version !== undefined) notes.push(version);
  if (role !== undefined) notes.push(role);
  if (replicas !== undefined && replicas.length > 0) {
    const behind = replicas.filter(({ online }) => !online).length;
    const count = `${String(replicas.length)} ${replicas.length === 1 ? 'replica' : 'replicas'}`;
    notes.push(behind === 0 ? count : `${count}, ${String(behind)} not in step`);
  }
  if (evictionPolicy !== undefined && evictionPolicy !== 'noeviction') notes.push(evictionPolicy);
  if (subscriber === false) notes.push('no messages');
  if (quarantine !== undefined && quarantine > 0) notes.push('in quarantine');
  return notes;
}
