import { assertName } from '../client/validation.js';
import { LockConfigError, LockKeyError } from '../api/errors.js';
import { isLockKeyError } from '../api/error-guards.js';
import { describe } from '../api/describe.js';
import { inQuotes, onOneLine } from '../runtime/text.js';

/** The values from which a template's paths start, by name. */
export type TemplateRoots = Readonly<Record<string, unknown>>;

/** A compiled template. It gives the keys for one call: one key unless the template has a `[*]`. */
export type KeyTemplate = (roots: TemplateRoots) => string[];

/** `.name`, `["name"]` or `[n]`; or `[*]`, every element. */
type Step = string | number | typeof EVERY;
const EVERY = Symbol('every element');

interface Path {
  /** As it is written in the template, for messages. */
  readonly text: string;
  readonly root: string;
  readonly steps: readonly Step[];
}

/** How many keys one call may give. A multi-lock of more is an unbounded list from outside. */
const MAX_KEYS = 1_000;

/** Roots that are texts, and end a path. */
const TEXTS = ['class', 'method'];

const NAME = /[A-Za-z_$][\w$]*/y;
const INDEX = /\[(0|[1-9]\d{0,8})\]/y;
const QUOTED = /\["((?:[^"\\]|\\.)*)"\]/y;

/**
 * Compiles text with `$<path>` in it; `$$<` is a literal `$<`. Nothing is evaluated: a path is a root and a list of
 * properties.
 * @param roots the names that a path may start with
 * @throws LockConfigError with the position, when the template is malformed
 */
export function compileTemplate(template: string, roots: readonly string[]): KeyTemplate {
  const parts = parse(template, roots);
  const written = onOneLine(template);
  const source = sourceOf(written);
  return (values) => {
    let keys = [''];
    const given: string[] = [];
    for (const part of parts) {
      const texts = typeof part === 'string' ? [part] : resolve(part, values, written);
      assertNumberOfKeys(keys.length * texts.length, source);
      if (typeof part !== 'string') given.push(...texts);
      keys = keys.flatMap((key) => texts.map((text) => key + text));
    }
    // A key without values is not checked: the literal text of a template is intended.
    if (given.length > 0) for (const key of keys) assertSound(key, source);
    // A missing value is refused, with any text around it.
    for (const text of given) assertSound(text, source);
    return keys;
  };
}

/** Whether a key has a template with a path that starts with this root. */
export const usesRoot = (key: unknown, root: string, roots: readonly string[]): boolean =>
  (Array.isArray(key) ? (key as unknown[]) : [key]).some(
    (template) =>
      typeof template === 'string' &&
      parse(template, roots).some((part) => typeof part !== 'string' && part.root === root),
  );

/**
 * The templates of a key that name the class, as all decorators write them: two that are alike may give one lock. Every value
 * but those of the class and the method is a `*`.
 */
export const classTemplates = (key: unknown, roots: readonly string[], method: string): string[] =>
  [key].flat().flatMap((template) => {
    if (typeof template !== 'string' || !usesRoot(template, 'class', roots)) return [];
    const shown = (part: string | Path): string => {
      if (typeof part === 'string') return part;
      return part.root === 'method' ? method : part.root === 'class' ? '$<class>' : '$<*>';
    };
    return parse(template, roots).map(shown).join('');
  });

const sourceOf = (written: string): string => `The key template "${written}"`;

/**
 * The text of a missing value, as a word of its own. `null` does not match if another word is joined to it, as in
 * `null-island`. A name that begins with one of the other words is rarer than a mistake.
 */
const MISSING =
  /(?<![\p{L}\p{N}])(?:(?:undefined|NaN)(?![\p{L}\p{N}])|null(?![\p{L}\p{N}]|[-_]\p{L}))|\[object [^\]]{0,64}\]/u;

/**
 * Refuses a key in which a value is plainly missing, such as `order:undefined`: all calls would share one lock. The length
 * is checked first, because a key from outside may be as long as a request's body.
 * @throws LockKeyError
 */
export function assertSound(key: string, source: string): void {
  assertName(key);
  const [missing] = MISSING.exec(key) ?? [];
  if (missing !== undefined) {
    throw new LockKeyError(
      `${source} gives "${inQuotes(key)}", where ${missing} looks like a missing value`,
      key,
    );
  }
}

/** @throws LockKeyError for an unbounded list from outside, which would keep the store busy for long */
export function assertNumberOfKeys(count: number, source: string): void {
  if (count <= MAX_KEYS) return;
  throw new LockKeyError(`${source} gives more than ${String(MAX_KEYS)} keys`);
}

function parse(template: string, roots: readonly string[]): (string | Path)[] {
  const parts: (string | Path)[] = [];
  let text = '';
  for (let at = 0; at < template.length;) {
    if (template.startsWith('$$<', at)) {
      text += '$<';
      at += 3;
    } else if (template.startsWith('$<', at)) {
      if (text !== '') parts.push(text);
      text = '';
      const { path, end } = parsePath(template, at + 2, roots);
      parts.push(path);
      at = end;
    } else {
      assertNotForeign(template, at);
      text += template.charAt(at++);
    }
  }
  if (text !== '') parts.push(text);
  if (parts.length === 0) throw malformed(template, 0, 'is empty');
  return parts;
}

/**
 * How other template languages write a value: `${…}`, `$name`, `#{…}`, `#name`, `{{…}}`. And `<args[0]>` or
 * `{req.params.id}`, with the sign forgotten or another bracket, or without any, as in `args[0]`. What follows `$$<` is
 * literal. So is `Orders#pay`, the name of a method, and `{id}`, the hash tag of a Redis cluster.
 */
const FOREIGN =
  /\$\{|\$[A-Za-z_]\w*|#\{|(?<![\p{L}\p{N}_)\]}>])#[\p{L}_]\w*|\{\{|[<{](?:args|req|this|class|method)(?![\w$])|(?<!\$\$<|[\w$])(?:args\[|req\.(?:params|query|body|headers)\b)/uy;

/** As a text, it would give all calls the same lock, silently. */
function assertNotForeign(template: string, at: number): void {
  FOREIGN.lastIndex = at;
  const [foreign] = FOREIGN.exec(template) ?? [];
  if (foreign === undefined) return;
  throw malformed(
    template,
    at,
    `${foreign} is no value here, and every call would get the same lock. A value is written $<args[0].id>; a text with ` +
      `${foreign} in it is given by a function`,
  );
}

function parsePath(template: string, from: number, roots: readonly string[]): { path: Path; end: number } {
  let at = from;
  const take = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const match = pattern.exec(template);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };

  const root = take(NAME)?.[0] ?? '';
  if (!roots.includes(root)) throw malformed(template, from, `a path starts with ${roots.join(', ')}`);
  const steps: Step[] = [];
  while (template.charAt(at) !== '>') {
    const start = at;
    if (template.charAt(at) === '.') {
      at++;
      const name = take(NAME)?.[0];
      if (name === undefined) throw malformed(template, at, 'a name is expected after the dot');
      steps.push(name);
    } else if (template.startsWith('[*]', at)) {
      at += 3;
      steps.push(EVERY);
    } else {
      const index = take(INDEX)?.[1];
      const quoted = index === undefined ? take(QUOTED)?.[1] : undefined;
      if (index !== undefined) steps.push(Number(index));
      else if (quoted !== undefined) steps.push(unquote(template, start, quoted));
      else throw malformed(template, start, 'expected .name, ["name"], [0], [*] or >');
    }
  }
  const text = template.slice(from, at);
  if (TEXTS.includes(root) && steps.length > 0) {
    throw malformed(template, from + root.length, `${root} is a text, nothing follows it`);
  }
  if (!TEXTS.includes(root) && steps.length === 0) {
    throw malformed(template, at, `${root} is no value; name a part of it`);
  }
  if (root === 'args' && typeof steps[0] === 'string') {
    throw malformed(template, from + root.length, 'args is followed by [0], [1]… or [*]');
  }
  return { path: { text, root, steps }, end: at + 1 };
}

function unquote(template: string, at: number, quoted: string): string {
  try {
    return JSON.parse(`"${quoted}"`) as string;
  } catch {
    throw malformed(template, at, 'a quoted name is written like a JSON string');
  }
}

const malformed = (template: string, at: number, rule: string) =>
  new LockConfigError('key', `"${onOneLine(template)}" is malformed at position ${String(at)}: ${rule}`);

/**
 * Follows a path to its values as texts.
 * @param written the template, for messages
 */
function resolve({ root, steps, text }: Path, roots: TemplateRoots, written: string): string[] {
  let values: unknown[] = [roots[root]];
  try {
    for (const step of steps) {
      values = values.flatMap((value) => (step === EVERY ? elements(value) : [propertyOf(value, step)]));
      assertNumberOfKeys(values.length, sourceOf(written));
    }
  } catch (cause) {
    if (isLockKeyError(cause)) throw cause;
    // The caller's own getter has thrown.
    throw new LockKeyError(`$<${text}> in the key template "${written}" cannot be read`, undefined, cause);
  }
  if (values.length === 0) throw unusable(text, written, 'an empty list');
  return values.map((value) => textOf(value) ?? raise(unusable(text, written, describe(value))));
}

/** An element that a sparse array lacks is undefined. Without the copy it would be passed over. */
const elements = (value: unknown): unknown[] => (Array.isArray(value) ? Array.from(value) : [undefined]);

/**
 * An own property, or one that an accessor of the value's class computes. Nothing else of a prototype is read: neither
 * `constructor` nor `__proto__`. A method is returned for the message that says so.
 */
function propertyOf(value: unknown, step: string | number): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  if (Object.hasOwn(value, step)) return Reflect.get(value, step);
  for (const prototype of classesOf(value)) {
    const property = Object.getOwnPropertyDescriptor(prototype, step);
    if (property?.get !== undefined) return Reflect.get(value, step);
    if (property !== undefined) return typeof property.value === 'function' ? property.value : undefined;
  }
  return undefined;
}

/** The prototypes of a value, without the last one, which is Object.prototype. */
function* classesOf(value: object): Generator<object> {
  let prototype = Reflect.getPrototypeOf(value);
  while (prototype !== null) {
    const next = Reflect.getPrototypeOf(prototype);
    if (next !== null) yield prototype;
    prototype = next;
  }
}

function textOf(value: unknown): string | undefined {
  if (typeof value === 'string') return value === '' ? undefined : value;
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : undefined;
  return typeof value === 'bigint' || typeof value === 'boolean' ? String(value) : undefined;
}

const unusable = (path: string, written: string, found: string) =>
  new LockKeyError(
    `$<${path}> in the key template "${written}" must be a non-empty text, a finite number, a bigint or a boolean ` +
      `(found: ${found})`,
  );

function raise(error: Error): never {
  throw error;
}
