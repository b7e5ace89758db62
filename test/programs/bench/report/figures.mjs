/** Titles of the figures, and how many digits say something. */
export const FIGURES = {
  before: ['per s before', 0],
  throughput: ['per s', 0],
  share: ['of that', 2],
  handOvers: ['max in hand-overs', 1],
  p50: ['p50 ms', 2],
  p99: ['p99 ms', 2],
  max: ['max ms', 2],
  ping: ['PING ms', 2],
  pings: ['p50 in PINGs', 2],
  commands: ['commands', 2],
  clientCpu: ['client µs', 1],
  serverCpu: ['server µs', 1],
  gaveUp: ['gave up', 0],
  unserved: ['unserved', 0],
  violations: ['violations', 0],
  leastServed: ['least served process', 0],
  mostServed: ['most served process', 0],
  processShare: ['least / most', 2],
  callerShare: ['least / most caller', 2],
  commands10s: ['commands per 10 s', 0],
  core: ['% of a core', 2],
  serverCore: ['% of the server', 2],
  lost: ['lost', 0],
  bytes: ['bytes', 0],
  microseconds: ['µs', 2],
  using: ['using µs', 2],
  decorated: ['decorated µs', 2],
  above: ['above µs', 2],
  without: ['no channels µs', 2],
  unheard: ['no listener µs', 2],
  heard: ['spans and metrics µs', 2],
  onRedis: ['on Redis µs', 2],
  percent: ['no listener, % of it', 2],
  nestedWithout: ['both off µs', 2],
  ordered: ['with lockOrder µs', 2],
  watched: ['with deadlock µs', 2],
  nestedOnRedis: ['on Redis µs', 2],
  orderedPercent: ['lockOrder, % of one lock', 2],
  watchedPercent: ['deadlock, % of one lock', 2],
  transaction: ['transaction µs', 0],
  guarded: ['guarded µs', 0],
  guardedThree: ['guarded by 3 names µs', 0],
  guardRatio: ['guarded / not', 2],
  listSeconds: ['s', 2],
  slowestCommand: ['slowest command, ms', 2],
  listed: ['listed', 0],
  arrival: ['block as they come, ms', 1],
  longestBlock: ['longest block after it, ms', 1],
  kept: ['leases kept', 0],
  served: ['viewers', 0],
  leasesCall: ['leases(), ms', 0],
  healthCall: ['health(), ms of CPU', 0],
  longestTurn: ['longest turn, ms', 0],
  held: ['held', 0],
  joined: ['µs to join', 1],
};

export const number = (value, digits) =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** The median, and how far the rounds lie apart where they do. */
export function figure({ median, least, most }, digits) {
  if (median === undefined || Number.isNaN(median)) return '–';
  const [low, middle, high] = [least, median, most].map((value) => number(value, digits));
  return low === high ? middle : `${middle} (${low}–${high})`;
}
