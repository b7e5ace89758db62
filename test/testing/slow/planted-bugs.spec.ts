/**
 * The suite for the authors of stores is worth what it catches (pitfall 68): a bug for each member and each field of the
 * port is planted into a store that passes, and the test that it names has to fail.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';
import { describeLockStore } from '../../../lib/testing/describe-lock-store.js';
import { type Bug, PLANTED_BUGS } from '../planted-bugs.js';
import { placeWith } from '../buggy-store.js';

/** The suite for a store with a bug, collected instead of run. */
function suiteFor(bug: Bug, queues: boolean) {
  const tests = new Map<string, () => Promise<void>>();
  let set = () => Promise.resolve();
  const words = {
    describe: (_: string, body: () => void) => {
      body();
    },
    it: (title: string, body: () => Promise<void>) => {
      tests.set(title, body);
    },
    beforeAll: (body: () => Promise<void>) => {
      set = body;
    },
    // How it ends is no matter: a bug may be in that.
    afterAll: () => undefined,
  };
  const globals = globalThis as unknown as Record<string, unknown>;
  const before = Object.keys(words).map((word) => [word, globals[word]] as const);
  Object.assign(globals, words);
  try {
    describeLockStore('with a bug', placeWith(bug), { queues });
  } finally {
    Object.assign(globals, Object.fromEntries(before));
  }
  return { tests, set };
}

const fails = (test: () => Promise<void>): Promise<boolean> =>
  Promise.resolve()
    .then(test)
    .then(
      () => false,
      () => true,
    );

describe('describeLockStore', () => {
  // Most of a test is waiting.
  it.concurrent.each(PLANTED_BUGS.map((planted) => [planted.of, planted.wrong, planted] as const))(
    'catches: %s %s',
    async (_, __, { caughtBy, bug, withoutQueues: hasNone }) => {
      // Too early is found by looking in time, which a machine with much to do may miss.
      for (let look = 1; look <= 3; look++) {
        const { tests, set } = suiteFor(bug, hasNone !== true);
        const named = [...tests].filter(([title]) => title.includes(caughtBy));
        expect(named).toHaveLength(1);
        await set();
        if (await fails(named[0]![1])) return;
      }
      throw new Error('The test passes with the bug');
    },
    30_000,
  );

  it('has a bug planted for every member and every field of the port', () => {
    const planted = new Set(PLANTED_BUGS.map(({ of }) => of));
    expect(membersOfThePort().filter((member) => !planted.has(member))).toEqual([]);
  });
});

/** `Type.member` for everything that the port declares, nested objects included; the name alone for a choice of texts. */
function membersOfThePort(): string[] {
  const sources = ['lock-store', 'queue-messages', 'store-health'].map((name) => {
    const path = new URL(`../../../lib/store/${name}.ts`, import.meta.url);
    return ts.createSourceFile(name, readFileSync(path, 'utf8'), ts.ScriptTarget.ES2022);
  });
  const found = new Set<string>();
  for (const statement of sources.flatMap(({ statements }) => statements)) {
    if (!ts.isInterfaceDeclaration(statement) && !ts.isTypeAliasDeclaration(statement)) continue;
    const type = statement.name.text;
    const before = found.size;
    const visit = (node: ts.Node): void => {
      if (ts.isPropertySignature(node) || ts.isMethodSignature(node)) {
        found.add(`${type}.${(node.name as ts.Identifier).text}`);
      }
      ts.forEachChild(node, visit);
    };
    visit(statement);
    if (found.size === before && type !== 'HealthStatus') found.add(type);
  }
  return [...found];
}
