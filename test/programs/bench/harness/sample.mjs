import { percentile, sum } from '../report/statistics.mjs';

/** The figures of acquisitions, whatever their scenario: what the processes came back with, and the server's counts. */
export function sampleOf({ acts, counts, steps }, { counted = true } = {}) {
  const parts = acts.flat();
  const waits = parts.flatMap((part) => part.waits);
  const total = (figure) => sum(parts.map((part) => part[figure] ?? 0));
  // Each act has a start and an end of its own; what lies between acts is the harness's.
  const time = sum(
    acts.map((act) => Math.max(...act.map((p) => p.ended)) - Math.min(...act.map((p) => p.began))),
  );
  const acquisitions = waits.length;
  return {
    acquisitions,
    throughput: (acquisitions / time) * 1000,
    p50: percentile(waits, 0.5),
    p99: percentile(waits, 0.99),
    max: percentile(waits, 1),
    commands: counts.commands / acquisitions,
    subscribes: counts.calls.subscribe ?? 0,
    clientCpu: (total('cpu') * 1000) / acquisitions,
    serverCpu: (counts.serverCpu * 1000) / acquisitions,
    violations: counted && parts.every((part) => part.counted ?? true) ? acquisitions - steps : undefined,
    gaveUp: total('gaveUp'),
    unserved: total('unserved'),
    ...sharesOf(parts.flatMap(({ served }) => (served === undefined ? [] : [served]))),
  };
}

/** How often each was served, by process and by caller. @param served of each process, its callers */
function sharesOf(served) {
  if (served.length === 0) return {};
  const processes = served.map(sum);
  const share = (counts) => Math.min(...counts) / Math.max(...counts);
  return {
    leastServed: Math.min(...processes),
    mostServed: Math.max(...processes),
    processShare: share(processes),
    callerShare: share(served.flat()),
  };
}
