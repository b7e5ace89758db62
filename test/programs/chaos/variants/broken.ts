import type { LockSpec } from '../round.js';
import type { Patch } from './variant.js';

/** A lock that is broken on purpose, and what brings it to light. */
export interface Control {
  readonly name: string;
  readonly patches: readonly Patch[];
  /** Names of faults, which strike in turn. */
  readonly faults: readonly string[];
  readonly habits?: Readonly<Record<string, number>>;
  readonly loops?: number;
  /** ms */
  readonly leaseTime?: number;
  readonly locks?: readonly LockSpec[];
  /** Breaks what is built on the lock. */
  readonly promises?: true;
  /** @default the single server */
  readonly topology?: string;
}

const SCRIPTS = 'stores/redis/scripts.generated.js';
const ACQUISITION = 'client/waiting/acquisition.js';
const QUEUE_WAIT = 'client/waiting/queue-wait.js';
const HAND_OFF = 'client/waiting/hand-off.js';
const TENURE = 'client/holding/tenure.js';
const DEADLINE = 'client/holding/deadline.js';
const CLOCK = 'runtime/clock.js';
const WATCHDOG = 'client/holding/watchdog.js';
const LANE = 'client/holding/renewal-lane.js';
const LOSS_TIMER = 'if (this.held)\n                this.lossTimer = this.armLossTimer();';
const CLIENT = 'client/lock-client.js';
const SCOPE = 'client/scope/scope.js';

const DEADLOCK = 'client/deadlock/';

const AMNESIA = 'the majority of a fresh hold killed, restarted empty';

/** Anybody may be late with a release whose lease another has got meanwhile. */
const LATE = ['worker stopped', 'event loop blocked', 'replies lost after the command was carried out'];

/** Only there does a process hand over by itself. */
const PLAIN_ONLY = ['plain', 'busy'].map((name) => ({ name, kind: 'lock' as const }));

/** Locks under locks, in any order. */
const NESTING = { nests: 0.9, fixedShare: 0, tries: 0, patient: 1, leastPatience: 3_800 };

export const broken: readonly Control[] = [
  {
    name: 'acquisition without the check that it is free',
    patches: [
      {
        file: SCRIPTS,
        find: 'if fields == 0 then return nil end',
        replace: 'if true then return nil end',
      },
    ],
    faults: [],
  },
  {
    name: 'several locks without the check that each is free',
    patches: [{ file: SCRIPTS, find: 'if exist(1, locks) then', replace: 'if false then' }],
    faults: [],
    habits: { several: 0.3 },
    locks: PLAIN_ONLY,
  },
  {
    name: 'release without the check of the owner',
    patches: [
      {
        file: SCRIPTS,
        find: "released = redis.pcall(goes_last and 'HEXISTS' or 'HDEL', KEYS[1], owner)",
        replace: "released = redis.call('DEL', KEYS[1])",
      },
    ],
    faults: LATE,
  },
  {
    name: 'lease counted from the reply, validity unchecked',
    patches: [
      {
        file: DEADLINE,
        find: 'sentAt + leaseTime - driftOf(leaseTime)',
        replace: 'now() + leaseTime',
      },
    ],
    faults: ['replies delayed', 'worker stopped'],
  },
  {
    name: 'wall clock instead of the monotonic one',
    patches: [{ file: CLOCK, find: 'time = monotonicTime();', replace: 'time = wallTime();' }],
    faults: ['client clock stepped', 'server stopped', 'client clock stepped'],
    habits: { long: 0.3 },
  },
  {
    name: 'no timer for the loss',
    patches: [
      {
        file: TENURE,
        find: LOSS_TIMER,
        replace: '',
      },
    ],
    faults: [],
    habits: { fixedShare: 0.5, long: 0.3, longest: 1_500 },
  },
  {
    name: 'watchdog outlives the release',
    patches: [
      { file: WATCHDOG, find: 'tenure.renewing || !tenure.held', replace: 'tenure.renewing' },
      { file: CLIENT, find: 'this.watchdog.forget(tenure);', replace: '' },
      { file: LANE, find: '.filter((tenure) => tenure.held)', replace: '' },
    ],
    faults: [],
  },
  {
    name: 'no second try after the subscription',
    patches: [
      { file: ACQUISITION, find: 'if (isSubscribed)\n                this.lookAgain();', replace: '' },
      {
        file: 'client/waiting/ask-and-listen.js',
        find: 'wasSubscribed ? this.queue.client.options.leaseTime : POLL',
        replace: 'Infinity',
      },
    ],
    topology: 'quorum',
    faults: ['network slow'],
    // A release that is missed is made good by the next one, so there must be few of them.
    habits: { fixedShare: 0, pause: 1_500, long: 0 },
    loops: 8,
    locks: Array.from({ length: 12 }, (_, index) => ({
      name: `quiet ${String(index)}`,
      kind: 'lock' as const,
    })),
  },
  {
    name: 'messages wake no waiter',
    patches: [
      { file: QUEUE_WAIT, find: 'onMessage(message) {', replace: 'onMessage(message) {\n        return;' },
    ],
    faults: [],
    habits: { fixedShare: 0 },
  },
  {
    name: 'fence as a plain counter',
    patches: [
      {
        file: SCRIPTS,
        find: 'local token = tonumber(moment)',
        replace: "moment = '1' local token = 1",
      },
    ],
    faults: ['FLUSHALL'],
  },
  {
    name: 'hand-off without a look at the lease',
    patches: [
      { file: HAND_OFF, find: 'tenure.remainingTime >= leaseTime / 2', replace: 'true' },
      { file: HAND_OFF, find: 'time - tenure.grantedAt < limit.time', replace: 'true' },
      {
        file: TENURE,
        find: 'this.announceIfOver();\n        return !this.ended;',
        replace: 'return !this.ended;',
      },
      { file: TENURE, find: LOSS_TIMER, replace: '' },
    ],
    faults: ['worker stopped', 'event loop blocked', 'server stopped', 'requests lost'],
    habits: { fixedShare: 0, long: 0.5, longest: 1_500, patient: 1 },
    locks: PLAIN_ONLY,
  },
  {
    name: 'what the store says to a renewal is not heard',
    patches: [
      {
        file: WATCHDOG,
        find: "if (state !== 'held')\n                    lose(tenure, state);\n                else if",
        replace: 'if',
      },
      { file: WATCHDOG, find: "if (state !== 'held')\n                lose(tenure, state);", replace: '' },
    ],
    faults: ['FLUSHALL', 'DEL of a lock'],
    habits: { long: 0.4, longest: 3_000, fixedShare: 0 },
  },
  {
    name: 'quorum of one',
    patches: [{ file: 'stores/quorum/member.js', find: 'Math.floor(count / 2) + 1', replace: '1' }],
    faults: [],
    topology: 'quorum',
  },
  {
    name: 'restarted nodes vote at once',
    patches: [
      {
        file: 'stores/quorum/charters.js',
        find: 'const left = isNew ? 0 : quarantineFor(longest) - age;',
        replace: 'const left = 0;',
      },
      // Many messages make the holder look at its hold, which often tells it of the loss just before another one gets the
      // lock. Nothing may depend on that.
      {
        file: 'stores/quorum/quorum-lock-store.js',
        find: 'renewEverywhere(this.quorum, requests);',
        replace:
          "requests.map((one) => one.leaseTime === 0 ? Promise.resolve('held') : renewEverywhere(this.quorum, [one])[0]);",
      },
    ],
    faults: [AMNESIA],
    // The holder must be still there when the others have connected again, and must not have renewed its lease yet: on a
    // busy machine that takes them seconds.
    leaseTime: 24_000,
    habits: { long: 1, shortest: 7_000, longest: 7_500, fixedShare: 0, patient: 1 },
    // All wait for one lock, which each process gives to another.
    loops: 1,
    locks: [{ name: 'plain', kind: 'lock' }],
    topology: 'quorum',
  },
  {
    name: 'hand-made lease belongs to the scope it runs in',
    patches: [{ file: SCOPE, find: 'scope?.ownsHandMade === true ? scope : undefined', replace: 'scope' }],
    faults: [],
    // Every acquisition comes as a request to a server that a lock holder has started, and all of them want two names.
    habits: { served: 1 },
    locks: PLAIN_ONLY,
  },
  {
    name: 'queue served from its end',
    patches: [
      {
        file: SCRIPTS,
        find: "redis.call('ZRANGE', KEYS[3], 0, 1, 'WITHSCORES')",
        replace: "redis.call('ZREVRANGE', KEYS[3], 0, 1, 'WITHSCORES')",
      },
    ],
    faults: [],
    habits: { fixedShare: 0, patient: 1 },
  },
  {
    name: 'process stands first again with its release',
    patches: [
      {
        file: SCRIPTS,
        find: 'local arrival = take_entry(entry, 0, ARGV[9]',
        replace: 'local arrival = take_entry(entry, 1, ARGV[9]',
      },
    ],
    faults: [],
    habits: { fixedShare: 0, patient: 1 },
    locks: PLAIN_ONLY,
  },
  {
    name: 'place that waits for messages only',
    patches: [
      {
        file: QUEUE_WAIT,
        find: 'const moment = now() + Math.min(',
        replace: 'return Infinity;\n        const moment = now() + Math.min(',
      },
    ],
    faults: ['messages dropped'],
    // Nobody who does not wait asks for the others, and some wait for longer than a forgotten hold may last.
    leaseTime: 400,
    habits: { fixedShare: 0, patient: 0, longestWait: 6_000, tries: 0, extensions: 0 },
    locks: PLAIN_ONLY,
  },
  {
    name: 'claim is believed to be a whole lease',
    patches: [{ file: QUEUE_WAIT, find: 'message.leaseTime < this.lease', replace: 'false' }],
    faults: [],
    // Who waits for longer than a claim is granted one, which is over before the first renewal.
    leaseTime: 6_000,
    habits: { long: 0.5, shortest: 1_300, longest: 1_600, fixedShare: 0, patient: 1 },
    loops: 1,
    locks: [{ name: 'plain', kind: 'lock' }],
  },
  {
    name: 'leader is not told at its deadline',
    patches: [
      {
        file: TENURE,
        find: 'this.announceIfOver();\n        return !this.ended;',
        replace: 'return !this.ended;',
      },
      { file: TENURE, find: LOSS_TIMER, replace: '' },
    ],
    faults: ['requests lost', 'worker stopped'],
    leaseTime: 500,
    promises: true,
  },
  {
    name: 'terms that shrink',
    patches: [
      {
        file: 'locks/election/held-term.js',
        find: 'return this.lease.fencingToken;',
        replace: 'return Math.round(1e9 - performance.now());',
      },
    ],
    faults: [],
    promises: true,
  },
  {
    name: 'ticket is good more than once',
    patches: [
      {
        file: SCRIPTS,
        find: "if not repeated and redis.call('HEXISTS', KEYS[1], owner) == 0 then",
        replace: 'if false then',
      },
    ],
    faults: [],
    promises: true,
  },
  {
    name: 'no second look for a success under the lock',
    patches: [
      {
        file: 'locks/once/once.js',
        find: 'const found = await done();',
        replace: 'const found = undefined;',
      },
    ],
    faults: [],
    promises: true,
  },
  {
    name: 'derived keys collide',
    patches: [
      {
        file: 'stores/redis/commands/keys.js',
        find: 'this.stored + RESERVED + role',
        replace: '`{${hashTag(this.stored)}}:${role}`',
      },
    ],
    faults: [],
    habits: { fixedShare: 0, patient: 1 },
    locks: ['{tag} one', '{tag} other'].map((name) => ({ name, kind: 'fair' as const })),
  },
  {
    name: 'deadlock over processes without a second look',
    patches: [
      { file: `${DEADLOCK}confirmation.js`, find: 'static LOOKS = 4', replace: 'static LOOKS = 1' },
      { file: `${DEADLOCK}deadlock-detector.js`, find: 'looks === needed', replace: 'looks >= 1' },
    ],
    faults: ['notes of waits stay', 'notes of waits stay'],
    habits: { ...NESTING, leastPatience: 700, lingers: 2_000, long: 0.9, shortest: 600, longest: 900 },
    loops: 2,
    locks: PLAIN_ONLY,
  },
  {
    name: 'deadlocks of which no process tells',
    patches: [
      {
        file: `${DEADLOCK}deadlock-detector.js`,
        find: 'await waits.keep(',
        replace: 'await Promise.resolve(',
      },
    ],
    faults: [],
    habits: NESTING,
    loops: 1,
    locks: PLAIN_ONLY,
  },
];
