import { isPeer, waitingPeers } from '../contenders.mjs';
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

  /** The least of a figure among the peers of a scenario that were served at all. */
  leastOfPeers(scenario, figure) {
    const { samples = {} } = this.results[scenario] ?? {};
    const values = Object.keys(samples)
      .filter((contender) => isPeer(contender) && this.median(scenario, contender, 'throughput') > 0)
      .map((contender) => this.median(scenario, contender, figure));
    return values.length === 0 ? undefined : Math.min(...values);
  }

  /** How much less often the least served caller was served than the most served one. */
  gap(scenario, contender) {
    const share = this.median(scenario, contender, 'callerShare');
    return share === undefined ? undefined : 1 - share;
  }
}
