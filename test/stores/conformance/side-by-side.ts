import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, it } from '@jest/globals';

type Body = () => Promise<void>;

/** What a suite has said with the words of the test framework. */
interface Group {
  readonly title: string;
  readonly parts: (Group | Test)[];
  readonly before: Body[];
  readonly after: Body[];
}

interface Test {
  readonly title: string;
  readonly body: Body;
  /** What became of it. */
  readonly end: Promise<void>;
  settle(end: Promise<void>): void;
}

/** ms that one test may take; Jest's own limit would be for whichever it is waiting for. */
const LIMIT = 30_000;

/** More of them would feel each other's bursts, in one event loop. */
const AT_ONCE = 3;

/**
 * Runs the suites that `register` describes three at a time, since each waits most of the time. Within a suite everything
 * keeps its order, and each test is reported as one of its own.
 */
export function sideBySide(register: () => void): void {
  const suites = record(register);
  // Jest may have been asked for some tests only, and is then done before all have run.
  const over = new AbortController();
  const ends: Promise<void>[] = [];
  let all: Promise<unknown>;
  beforeAll(() => {
    const next = suites.values();
    const lane = async () => {
      for (const suite of next) {
        if (over.signal.aborted) return;
        const end = run(suite, over.signal);
        ends.push(end);
        await succeeds(end);
      }
    };
    all = Promise.all(Array.from({ length: AT_ONCE }, lane));
  });
  for (const suite of suites) report(suite);
  afterAll(async () => {
    over.abort();
    await all;
    await Promise.all(ends);
  }, LIMIT);
}

/** The suite finds its words among the globals. */
function record(register: () => void): readonly Group[] {
  const root = group('');
  let current = root;
  const words = {
    describe: (title: string, body: () => void) => {
      const outer = current;
      current = group(title);
      outer.parts.push(current);
      body();
      current = outer;
    },
    it: (title: string, body: Body) => current.parts.push(test(title, body)),
    beforeAll: (body: Body) => current.before.push(body),
    afterAll: (body: Body) => current.after.push(body),
  };
  const usual = Object.fromEntries(Object.keys(words).map((word) => [word, Reflect.get(globalThis, word)]));
  Object.assign(globalThis, words);
  try {
    register();
  } finally {
    Object.assign(globalThis, usual);
  }
  const [stray] = root.parts.filter((part) => !isGroup(part));
  if (stray !== undefined) throw new Error(`"${stray.title}" is in no suite`);
  return root.parts.filter(isGroup);
}

function report(suite: Group): void {
  describe(suite.title, () => {
    for (const part of suite.parts) {
      if (isGroup(part)) report(part);
      else it(part.title, () => part.end, 2 * LIMIT);
    }
  });
}

/** Rejects with what went wrong after the tests. */
async function run(suite: Group, over: AbortSignal): Promise<void> {
  const ready = setUp(suite);
  const groups: Promise<void>[] = [];
  if (await succeeds(ready)) {
    for (const part of suite.parts) {
      if (over.aborted) break;
      const end = isGroup(part) ? run(part, over) : within(part.body);
      if (isGroup(part)) groups.push(end);
      else part.settle(end);
      await succeeds(end);
    }
  } else {
    settleAll(suite, ready);
  }
  for (const body of suite.after) await within(body);
  await Promise.all(groups);
}

const succeeds = (end: Promise<void>): Promise<boolean> =>
  end.then(
    () => true,
    () => false,
  );

async function setUp({ before }: Group): Promise<void> {
  for (const body of before) await within(body);
}

/** For those that could not be set up. */
function settleAll(suite: Group, end: Promise<void>): void {
  for (const part of suite.parts) {
    if (isGroup(part)) settleAll(part, end);
    else part.settle(end);
  }
}

async function within(body: Body): Promise<void> {
  const timer = new AbortController();
  const late = sleep(LIMIT, undefined, { signal: timer.signal }).then(() => {
    throw new Error(`Takes longer than ${String(LIMIT)} ms`);
  });
  late.catch(() => undefined);
  try {
    await Promise.race([body(), late]);
  } finally {
    timer.abort();
  }
}

const group = (title: string): Group => ({ title, parts: [], before: [], after: [] });

function test(title: string, body: Body): Test {
  let settle!: (end: Promise<void>) => void;
  const end = new Promise<void>((resolve) => (settle = resolve));
  // Jest looks at it when its turn comes.
  end.catch(() => undefined);
  return { title, body, end, settle };
}

const isGroup = (part: Group | Test): part is Group => 'parts' in part;
