import type { Attributes } from '@opentelemetry/api';
import type { LockTraceContext } from '../api/tracing-channels.js';

/** The names of all attributes, of spans and of metrics. */
export const ATTRIBUTES = {
  label: 'lock.label',
  kind: 'lock.kind',
  instance: 'lock.instance',
  name: 'lock.name',
  owner: 'lock.owner',
  holder: 'lock.holder',
  fencingToken: 'lock.fencing_token',
  outcome: 'lock.outcome',
  reason: 'lock.reason',
  handover: 'lock.handover',
  lease: 'lock.lease',
  waited: 'lock.waited',
  held: 'lock.held',
  attempts: 'lock.attempts',
  commands: 'lock.commands',
  error: 'error.type',
} as const;

/** What every span and every series of a metric has. The unnamed instance has no attribute. */
export function attributesOf({ label, kind, instance }: LockTraceContext): Attributes {
  const attributes: Attributes = { [ATTRIBUTES.label]: label, [ATTRIBUTES.kind]: kind };
  if (instance !== undefined) attributes[ATTRIBUTES.instance] = instance;
  return attributes;
}

/** The unit of times in OpenTelemetry. */
export const seconds = (time: number): number => time / 1_000;

export const leaseOf = ({ renewed }: { readonly renewed: boolean }): 'renewed' | 'fixed' =>
  renewed ? 'renewed' : 'fixed';
