/**
 * Which specs judge the files of a folder, quick ones first: each line is one run of Jest, and the first that fails
 * ends it. Those that use the built package cannot tell, and the slowest are left out.
 */
const RULES = ['test/core', 'test/locks/', 'test/scenarios/exit'];
const MEMORY = ['test/stores/conformance/memory', 'test/testing/'];
const PITFALLS = ['test/pitfalls/(acquiring|holding)'];
const QUEUE = ['test/queue/(rules|leases)'];
const REDIS = [
  'test/stores/conformance/redis',
  'test/stores/redis/(commands|wire|keys|server|subscriber|redis-member|scripts|preflight|lane|release-all)',
];
const CLUSTER = [
  'test/stores/conformance/cluster',
  'test/stores/cluster/(connections|order|privileges|down)',
];

const SPECS: readonly [folder: string, stages: readonly (readonly string[])[]][] = [
  ['lib/core/acquisition', [RULES, MEMORY, QUEUE, ['test/core/queue-entries', 'test/queue/hygiene']]],
  ['lib/core/tombstones', [['test/core/tombstones'], ['test/queue/crashes']]],
  ['lib/core/', [RULES, MEMORY, PITFALLS]],
  ['lib/locks/', [RULES, MEMORY, QUEUE]],
  [
    'lib/nest/',
    [
      ['test/nest/(decorator|current-lease|interceptor|key-template|module)'],
      ['test/nest/', 'test/testing/'],
    ],
  ],
  ['lib/stores/memory/', [MEMORY, RULES]],
  [
    'lib/stores/redis/scripts/',
    [REDIS, QUEUE, ['test/stores/redis/(states|inspect)', 'test/queue/(crashes|order)']],
  ],
  ['lib/stores/redis/cluster-', [CLUSTER, ['test/stores/cluster/(replication|moving)']]],
  ['lib/stores/redis/clients', [REDIS, ['test/stores/redis/connections', 'test/stores/cluster/connections']]],
  ['lib/stores/redis/slots', [CLUSTER]],
  ['lib/stores/redis/replication', [['test/stores/redis/replication']]],
  ['lib/stores/redis/', [REDIS, ['test/stores/redis/(connections|states|health|replication)']]],
  [
    'lib/stores/quorum/',
    [
      ['test/stores/quorum/(ballot|quorum-lock-store|holdings|majority|health|kinds|wake|waiting|presence)'],
      [
        'test/stores/conformance/quorum',
        'test/locks/list',
        'test/stores/quorum/(restart-quarantine|outages|releases|renewals|fencing|commands)',
      ],
    ],
  ],
  ['lib/stores/', [MEMORY, REDIS, ['test/stores/memory', 'test/stores/cluster/connections']]],
  ['lib/port/', [['test/port'], MEMORY, REDIS, ['test/stores/quorum/(kinds|health|releases)']]],
];

export const stagesFor = (file: string): readonly (readonly string[])[] =>
  SPECS.find(([folder]) => file.startsWith(folder))?.[1] ?? [];
