import { expect, it } from '@jest/globals';
import '../../lib/index.js';

/** What the copies of the package share under this name. */
const sharedState = (name: string): unknown =>
  Reflect.get(globalThis, Symbol.for(`nestjs-distributed-lock.${name}`));

// Jest replaces what can be configured by setters that call themselves, and late work of a test file would end the worker.
it.each(['clock', 'lock-order'])('the %s on globalThis has no field that Jest can replace', (name) => {
  const state = sharedState(name) as object;
  const descriptors = Object.values(Object.getOwnPropertyDescriptors(state));
  expect(descriptors.filter(({ configurable }) => configurable)).toEqual([]);
});
