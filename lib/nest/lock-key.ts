import { isThenable } from '../client/holding/late-result.js';
import { MAX_LABEL } from '../client/validation.js';
import { LockConfigError, LockKeyError } from '../api/errors.js';
import { describe } from '../api/describe.js';
import {
  assertNumberOfKeys,
  assertSound,
  compileTemplate,
  type KeyTemplate,
  type TemplateRoots,
} from './key-template.js';

/**
 * A key: a template, several (a multi-lock), or a function of the call's arguments, with the called object as its `this`. It
 * may give a Promise. The time until then counts as waiting for the lock.
 */
export type LockKey<Args extends readonly unknown[], Text extends string = string> =
  | Text
  | readonly Text[]
  | ((...args: Args) => string | readonly string[] | Promise<string | readonly string[]>);

/** Whether one of the texts names this argument. `$$<` is left alone: it is literal. */
type Names<Text extends string, Index extends number> = [
  Exclude<Extract<Text, `${string}$<args[${Index}]${string}`>, `${string}$$<args[${Index}]${string}`>,
] extends [never]
  ? false
  : true;

/** The arguments that templates need, as far as their texts are known to TypeScript. */
type TemplateArgs<Text extends string> =
  Names<Text, 3> extends true
    ? [unknown, unknown, unknown, unknown]
    : Names<Text, 2> extends true
      ? [unknown, unknown, unknown]
      : Names<Text, 1> extends true
        ? [unknown, unknown]
        : Names<Text, 0> extends true
          ? [unknown]
          : [];

/** The arguments that a key needs: of its function, or of its templates. */
export type KeyArgs<Args extends readonly unknown[], Text extends string> = string extends Text
  ? Args
  : TemplateArgs<Text>;

/** The sources of a key at call time: the roots of templates, and the arguments of a key function. */
export interface KeySource<Args extends readonly unknown[]> {
  readonly roots: TemplateRoots;
  readonly args: Args;
}

/** Gives the keys of one call: sorted, each once, at least one. */
export type KeyMaker<Args extends readonly unknown[]> = (
  source: KeySource<Args>,
) => string[] | Promise<string[]>;

/**
 * Compiles a key once, at decoration.
 * @throws LockConfigError when a template is malformed, or the key is something else
 */
export function compileKey<Args extends readonly unknown[]>(
  key: LockKey<Args>,
  roots: readonly string[],
): KeyMaker<Args> {
  if (typeof key === 'function') {
    // `this` is the object whose method is called, as in the method itself.
    return ({ roots, args }) => {
      const given: unknown = Reflect.apply(key, roots.this, args);
      return isThenable(given) ? Promise.resolve(given).then(checked).then(sorted) : sorted(checked(given));
    };
  }
  const templates: readonly unknown[] = Array.isArray(key) ? key : [key];
  if (templates.length === 0) throw new LockConfigError('key', 'an array of templates must not be empty');
  const compiled = templates.map((template): KeyTemplate => {
    if (typeof template !== 'string') {
      const rule = 'must be a template, an array of templates or a function';
      throw new LockConfigError('key', rule, { value: template });
    }
    return compileTemplate(template, roots);
  });
  return ({ roots: values }) => {
    const keys = compiled.flatMap((template) => template(values));
    assertNumberOfKeys(keys.length, 'The array of key templates');
    return sorted(keys);
  };
}

/** The label of locks with this key: the templates as they are written. Undefined for a function. */
export const labelOf = (key: LockKey<never[]>): string | undefined =>
  typeof key === 'function' ? undefined : [key].flat().join(',').slice(0, MAX_LABEL);

/** A key function may be wrong in ways that the types cannot see. */
function checked(result: unknown): readonly string[] {
  const keys: readonly unknown[] = Array.isArray(result) ? result : [result];
  if (keys.length === 0) throw new LockKeyError('The key function gives no key');
  assertNumberOfKeys(keys.length, 'The key function');
  return keys.map((key) => {
    if (typeof key !== 'string' || key === '') {
      throw new LockKeyError(`The key function must give a non-empty string (found: ${describe(key)})`);
    }
    assertSound(key, 'The key function');
    return key;
  });
}

const sorted = (keys: readonly string[]): string[] =>
  keys.length === 1 ? [...keys] : [...new Set(keys)].sort();
