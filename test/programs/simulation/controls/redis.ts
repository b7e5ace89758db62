import { HABITS } from '../plan.js';
import type { Mutant } from './mutants.js';

const calm = { ...HABITS, fixedShare: 0, tries: 0, patient: 1, several: 0, nests: 0, extensions: 0 };

const SCRIPTS = 'stores/redis/scripts.generated.js';

/** What only a server of Redis brings to light, besides the controls of the chaos runs. */
export const redisMutants: readonly Mutant[] = [
  {
    name: 'token by the clock of the server alone',
    topology: 'redis',
    patches: [{ file: SCRIPTS, find: 'if last and last >= token then', replace: 'if false then' }],
    faults: ['server clock stepped and returned'],
    habits: calm,
    loops: 4,
    leaseTime: 1_500,
    locks: undefined,
  },
  {
    name: 'scripts are sent whole only once',
    topology: 'redis',
    patches: [
      {
        file: 'stores/redis/commands/evaluator.js',
        find: "replyCode(error) === 'NOSCRIPT'))",
        replace: "(replyCode(error) === 'NOSCRIPT' && this.sent !== (this.sent = true))))",
      },
    ],
    faults: ['scripts forgotten'],
    habits: HABITS,
    loops: 4,
    leaseTime: 1_500,
    locks: undefined,
  },
  {
    name: 'grants that no replica has confirmed',
    topology: 'redis, replicas: 1',
    patches: [
      {
        file: 'stores/redis/commands/confirmations.js',
        find: 'await this.confirm(receipt, name);',
        replace: ';',
      },
    ],
    faults: ['failover'],
    habits: { ...calm, long: 0.4, shortest: 300, longest: 900 },
    loops: 4,
    leaseTime: 3_000,
    locks: undefined,
  },
];
