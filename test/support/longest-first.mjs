import { createRequire } from 'node:module';

// Jest's own, which is CommonJS and not a dependency of this package.
const jest = createRequire(import.meta.url).resolve('jest');
const { default: Sequencer } = createRequire(createRequire(jest).resolve('@jest/core'))(
  '@jest/test-sequencer',
);

/** The files that take longest. Those that compute much stand between those that wait, so that few of them meet. */
const LONG = [
  'queue/slow/crashes',
  'stores/redis/slow/sentinel',
  'stores/conformance/slow/acl',
  'stores/redis/slow/replication',
  'stores/cluster/slow/failover',
  'stores/conformance/',
  'stores/quorum/slow/charter',
  'testing/slow/planted-bugs',
  'pitfalls/holding',
  'stores/redis/slow/memory-full',
  'stores/quorum/slow/absence',
  'jvm/',
  'pitfalls/acquiring',
  'pitfalls/slow/module',
  'stores/redis/health',
  'pitfalls/connections',
];

/**
 * Where Jest remembers no earlier run, as in CI, it would start with the longest source text. A file that takes a minute
 * and comes last has the machine to itself.
 */
export default class LongestFirst extends Sequencer {
  sort(tests) {
    const rank = ({ path }) => {
      const place = LONG.findIndex((name) => path.includes(`/test/${name}`));
      return place === -1 ? LONG.length : place;
    };
    return super.sort(tests).toSorted((a, b) => rank(a) - rank(b));
  }
}
