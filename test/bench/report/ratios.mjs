import { waitingPeers } from '../contenders.mjs';
import { median } from './statistics.mjs';

/** Medians and ratios of what was measured; undefined where it was not. Ratios are of one round, then the median. */
export class Ratios {
  constructor(results) {
    this.results = results;
  }

  samples(scenario, contender) {
    return this.results[scenario]?.samples[contender] ?? [];
  }

  median(scenario, contender, figure) {
    const values = this.samples(scenario, contender).map((sample) => sample[figure]);
    return values.length === 0 ? undefined : median(values);
  }

  most(scenario, contender, figure) {
    const values = this.samples(scenario, contender).map((sample) => sample[figure]);
    return values.length === 0 ? undefined : Math.max(...values);
  }

  ratio(scenario, contender, other, figure = 'throughput') {
    const others = this.samples(scenario, other);
    const ratios = this.samples(scenario, contender).flatMap((sample, round) =>
      others[round] === undefined ? [] : [sample[figure] / others[round][figure]],
    );
    return ratios.length === 0 ? undefined : median(ratios);
  }

  /** How much more than the best of the peers that wait, in whichever form. */
  overBestPeer(scenario, contender) {
    const best = Math.max(...waitingPeers.map((peer) => this.median(scenario, peer, 'throughput') ?? 0));
    const mine = this.median(scenario, contender, 'throughput');
    return best === 0 || mine === undefined ? undefined : mine / best;
  }

  /** How much less often the least served waiter was served than the most served one. */
  gap(scenario, contender) {
    const samples = this.samples(scenario, contender);
    const gaps = samples.map(({ leastServed, mostServed }) => 1 - leastServed / mostServed);
    return samples.length === 0 ? undefined : median(gaps);
  }
}
