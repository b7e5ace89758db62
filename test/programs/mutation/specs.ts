import { readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Which specs judge the files of a folder, quick ones first: each line is one run of Jest, and the first that fails
 * ends it. All are of `npm test`. Those that use the built package cannot tell, and are left out.
 */
const CORE = ['test/client/'];
const LOCKS = ['test/locks/(?!scope|busy-member|travel)'];
const LONG_HOLDS = ['test/locks/(scope|busy-member|travel)'];
const MEMORY = ['test/stores/conformance/memory', 'test/testing/'];
const PITFALLS = ['test/pitfalls/(acquiring|holding)'];
const SHUTDOWN = ['test/nest/(shutdown|election)'];
const QUEUE = ['test/queue/(rules|leases)'];
const REDIS = [
  'test/stores/conformance/redis',
  'test/stores/redis/(commands|wire|keys|server|subscriber|redis-member|scripts|lane|release-all|odd-answers)',
];
const FAULTS = ['test/stores/redis/(sentinel-|fail-fast|database|selected-database|transactions|labels)'];
const CLUSTER = ['test/stores/conformance/cluster', 'test/stores/cluster/'];

const SPECS: readonly [folder: string, stages: readonly (readonly string[])[]][] = [
  ['lib/client/waiting/acquisition', [CORE, LOCKS, MEMORY, QUEUE, LONG_HOLDS]],
  [
    'lib/client/holding/late-result',
    [['test/nest/(late-results|own-answer|decorator-observable|interceptor)'], LOCKS],
  ],
  ['lib/client/deadlock/', [['test/client/deadlock/'], CORE, LOCKS]],
  ['lib/client/', [CORE, LOCKS, MEMORY, LONG_HOLDS, PITFALLS, SHUTDOWN]],
  ['lib/locks/', [LOCKS, CORE, MEMORY, QUEUE, LONG_HOLDS, PITFALLS, SHUTDOWN]],
  [
    'lib/nest/',
    [
      ['test/nest/(decorator|current-lease|interceptor|key-template|module)'],
      ['test/nest/(?!board/|telemetry/|transports/)[^/]*$', 'test/testing/'],
      ['test/nest/transports/'],
    ],
  ],
  ['lib/stores/memory/', [['test/stores/memory/'], MEMORY, LOCKS, CORE]],
  [
    'lib/stores/redis/scripts/',
    [
      REDIS,
      QUEUE,
      ['test/stores/redis/(replica-reads|states|inspect|health-trial|foreign|hand-over|fencing)'],
      ['test/queue/order'],
    ],
  ],
  ['lib/stores/redis/connection/cluster-nodes', [['test/stores/redis/connection-url'], CLUSTER]],
  ['lib/stores/redis/connection/cluster-', [CLUSTER]],
  // Wrong options fail at boot, whose messages are looked at there.
  ['lib/stores/redis/connection/client-options', [['test/nest/module'], REDIS]],
  ['lib/stores/redis/connection/sentinel-round', [['test/stores/redis/connection-state'], FAULTS]],
  ['lib/stores/redis/connection/connection-stage', [['test/stores/redis/connection-state'], FAULTS]],
  ['lib/stores/redis/connection/client-', [['test/stores/redis/clients'], REDIS]],
  ['lib/stores/redis/connection/command-refused', [['test/stores/redis/redis-errors'], REDIS]],
  ['lib/stores/redis/connection/clients', [REDIS, ['test/stores/redis/connections', 'test/stores/cluster/']]],
  ['lib/stores/redis/connection/slots', [CLUSTER]],
  ['lib/stores/redis/connection/node-connections', [CLUSTER]],
  ['lib/stores/redis/connection/sharding', [CLUSTER]],
  ['lib/stores/redis/commands/replication', [REDIS, PITFALLS]],
  ['lib/stores/redis/', [REDIS, ['test/stores/redis/(connections|states|health|foreign|fencing)'], FAULTS]],
  [
    'lib/stores/quorum/',
    [
      [
        'test/stores/quorum/(answers|ballot|votes|quorum-lock-store|quorum-listing|forced|majority|health|kinds|wake|waiting)',
      ],
      [
        'test/stores/conformance/quorum',
        'test/locks/list',
        'test/stores/quorum/(charter|founding|releases|renewals|fencing|commands)',
        'test/stores/redis/labels',
      ],
    ],
  ],
  ['lib/stores/', [MEMORY, REDIS, ['test/stores/memory']]],
  ['lib/store/', [['test/store'], MEMORY, REDIS, ['test/stores/quorum/(quorum-lock-store|boot)']]],
];

const TESTS = fileURLToPath(new URL('../../', import.meta.url));
const SPEC_FILES = readdirSync(TESTS, { recursive: true, encoding: 'utf8' }).filter(
  (name) => name.endsWith('.spec.ts') && !name.includes('/slow/'),
);

/** The specs of one file, which have its name or a part of it, come before those of its folder. */
export function stagesFor(file: string): readonly (readonly string[])[] {
  const name = basename(file, extname(file));
  const own = SPEC_FILES.filter((spec) => `-${basename(spec, '.spec.ts')}-`.includes(`-${name}-`));
  const ofFolder = SPECS.find(([folder]) => file.startsWith(folder))?.[1] ?? [];
  return own.length === 0 ? ofFolder : [own.map((spec) => join('test', spec)), ...ofFolder];
}
