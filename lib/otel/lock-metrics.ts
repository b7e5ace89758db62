import type {
  Attributes,
  Counter,
  Histogram,
  Meter,
  ObservableCallback,
  ObservableGauge,
  UpDownCounter,
} from '@opentelemetry/api';
import type { ServiceState } from '../module/service-state.js';
import type { LockAcquireContext, LockHoldContext, LockTraceContext } from '../api/tracing-channels.js';
import { ATTRIBUTES, attributesOf, leaseOf, seconds } from './attributes.js';
import type { Recorder } from './recorder.js';
import { metricLabelOf } from './telemetries.js';

/** Upper bounds of histograms, s: from a grant without contention to a wait of minutes. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];

/** Series by label, kind and instance. */
export class LockMetrics implements Recorder {
  private readonly waitDuration: Histogram;
  private readonly holdDuration: Histogram;
  private readonly waiting: UpDownCounter;
  private readonly held: UpDownCounter;
  private readonly acquisitions: Counter;
  private readonly lost: Counter;
  private readonly handovers: Counter;
  private readonly headroom: ObservableGauge;
  private readonly observe: ObservableCallback;

  constructor(meter: Meter, services: () => Iterable<ServiceState>) {
    const durations = { unit: 's', advice: { explicitBucketBoundaries: BUCKETS } };
    this.waitDuration = meter.createHistogram('lock.wait.duration', {
      description: 'From the call that asks for a lock to its answer',
      ...durations,
    });
    this.holdDuration = meter.createHistogram('lock.hold.duration', {
      description: 'From the grant of a lock to its release or loss',
      ...durations,
    });
    this.waiting = meter.createUpDownCounter('lock.waiting', {
      description: 'Calls that have no answer yet',
      unit: '{call}',
    });
    this.held = meter.createUpDownCounter('lock.held', {
      description: 'Locks that are held',
      unit: '{lock}',
    });
    this.acquisitions = meter.createCounter('lock.acquisitions', {
      description: 'Calls that asked for a lock, by how they have ended',
      unit: '{call}',
    });
    this.lost = meter.createCounter('lock.lost', {
      description: 'Locks that were lost before their release',
      unit: '{lock}',
    });
    this.handovers = meter.createCounter('lock.handovers', {
      description: 'Locks that came directly from another holder',
      unit: '{handover}',
    });
    this.headroom = meter.createObservableGauge('lock.renewal.headroom', {
      description: 'The smallest remaining share of a lease; 1 without renewed leases',
      unit: '1',
    });
    this.observe = (result) => {
      for (const [instance, least] of leastHeadroomOf(services())) {
        result.observe(least, instance === undefined ? {} : { [ATTRIBUTES.instance]: instance });
      }
    };
    this.headroom.addCallback(this.observe);
  }

  stop(): void {
    this.headroom.removeCallback(this.observe);
  }

  acquireStarted(acquisition: LockAcquireContext): void {
    this.waiting.add(1, seriesOf(acquisition));
  }

  acquireEnded(acquisition: LockAcquireContext): void {
    const series = seriesOf(acquisition);
    const { outcome = 'refused', waited = 0 } = acquisition;
    const ended = { ...series, [ATTRIBUTES.outcome]: outcome };
    this.waiting.add(-1, series);
    this.acquisitions.add(1, ended);
    this.waitDuration.record(seconds(waited), ended);
  }

  holdStarted(hold: LockHoldContext): void {
    const series = seriesOf(hold);
    this.held.add(1, series);
    const { handedOver } = hold;
    if (handedOver !== undefined) this.handovers.add(1, { ...series, [ATTRIBUTES.handover]: handedOver });
  }

  holdEnded(hold: LockHoldContext): void {
    const series = seriesOf(hold);
    const { outcome = 'released', reason = 'released', heldFor = 0 } = hold;
    this.held.add(-1, series);
    this.holdDuration.record(seconds(heldFor), { ...series, [ATTRIBUTES.outcome]: outcome });
    if (outcome === 'released') return;
    this.lost.add(1, { ...series, [ATTRIBUTES.reason]: reason, [ATTRIBUTES.lease]: leaseOf(hold) });
  }
}

const seriesOf = (context: LockTraceContext): Attributes =>
  attributesOf({ ...context, label: metricLabelOf(context.label) });

function leastHeadroomOf(services: Iterable<ServiceState>): ReadonlyMap<string | undefined, number> {
  const least = new Map<string | undefined, number>();
  for (const service of services) {
    const { instance } = service.settings;
    const share = Math.min(1, Math.max(0, service.headroomShare() ?? 1));
    least.set(instance, Math.min(least.get(instance) ?? 1, share));
  }
  return least;
}
