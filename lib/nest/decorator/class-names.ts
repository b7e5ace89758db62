import { LockConfigError } from '../../api/errors.js';
import type { LockService } from '../../module/lock-service.js';

/** A class with its constructor's name, as it runs. */
type Named = object & { readonly name: string };

/** In one file with the application, it tells what becomes of the names of classes there. */
// eslint-disable-next-line @typescript-eslint/no-extraneous-class -- only its name and its text are of use
class Canary {}

/** A minifier has names of three characters for 200,000 classes. */
const SHORT = 3;
/** As Nest's `mixin()` names a class: at random, in each process. And as Rollup names the second class of a name. */
const MADE = /^[\da-f]{21}$|\$\d+$/;

/** No white space stands around the first brace. A compiler that is no minifier puts a line end behind it. */
const isMinified = (type: object): boolean =>
  /^(?:class|function)\b[^{]*(?<!\s)\{\S/.test(Function.prototype.toString.call(type));

/** A class without a name of its own in its text, as esbuild writes one with a decorator. */
const isAnonymous = (type: object): boolean =>
  /^class(?: extends\b| ?\{)/.test(Function.prototype.toString.call(type));

/** Renamed by a tool that may have left all line ends. */
const isRewritten = (type: Named): boolean =>
  isMinified(type) || isAnonymous(type) || !/^\p{Lu}/u.test(type.name);

/**
 * Whether a tool has made the name of a class. The next build, or another process, may have another name for it, or this name
 * for another class. A written name of three letters in a file that a tool has rewritten looks the same, unless this package in the same file
 * has kept its names.
 */
function isMade(type: Named): boolean {
  if (MADE.test(type.name)) return true;
  if (type.name.length > SHORT) return false;
  return Canary.name !== 'Canary' || (isRewritten(type) && !isRewritten(Canary));
}

const CURE =
  "Write the name into the key, or let the minifier or bundler keep names (esbuild's keepNames, terser's keep_classnames)";

/** @throws LockConfigError for a key with `$<class>` of a class whose name a tool has made */
export function assertWrittenName(type: Named, declared: string): void {
  if (!isMade(type)) return;
  throw new LockConfigError(
    declared,
    `has a key with $<class>, and "${type.name}" is no name that the class was written with: the next build may give it another ` +
      `one, and this one to another class. ${CURE}`,
  );
}

/** @throws LockConfigError if a label would be made of such a name */
export function assertWrittenLabel(type: Named, declared: string): void {
  if (!isMade(type)) return;
  throw new LockConfigError(
    declared,
    `has a key function and no label, which is made of the name of the class then, and "${type.name}" is no name that the class ` +
      'was written with. Give it the option label, or let the minifier or bundler keep names',
  );
}

/** The method by which an interceptor checks the name of a class. */
export const CHECK_NAME = Symbol.for('nestjs-distributed-lock.check-name');

type CheckName = (this: unknown, type: unknown) => void;

/** Lets each interceptor of a class check its name, as Nest knows them at boot. */
export function checkNames(
  type: unknown,
  enhancers: readonly { readonly metatype: unknown; readonly instance: unknown }[] = [],
): void {
  for (const { metatype, instance } of enhancers) {
    const interceptor = metatype as { prototype?: { [CHECK_NAME]?: CheckName } } | null;
    const check = interceptor?.prototype?.[CHECK_NAME];
    if (check !== undefined) check.call(instance, type);
  }
}

/** As esbuild names the second of two classes of one name, `Orders2`, and webpack, `module_Orders`. */
function mayBeRenamed(type: Named, other: Named): boolean {
  const [own, its] = [writtenName(type), writtenName(other)];
  return type.name !== other.name && (own === its || own.endsWith(`_${its}`) || its.endsWith(`_${own}`));
}

const writtenName = (type: Named): string => (isAnonymous(type) ? type.name.replace(/\d+$/, '') : type.name);

/** Classes with such templates, by the end of their names. */
type ByName = Map<string, { readonly type: Named; readonly template: string }[]>;

/** The classes of each application, noted by the decorators and interceptors of all copies of this package. */
const CLASSES = Symbol.for('nestjs-distributed-lock.class-names');
const shared = globalThis as { [CLASSES]?: WeakMap<LockService, ByName> | undefined };
const classes = (shared[CLASSES] ??= new WeakMap<LockService, ByName>());

/**
 * Notes a class that has a key with `$<class>`, unless it is refused.
 * @param templates of the key, as classTemplates gives them
 * @throws LockConfigError if another class was written with that name: both would have one lock, or the bundler has
 *   renamed one of them, and may exchange the names in the next build
 */
export function assertOnlyName(
  service: LockService,
  type: Named,
  templates: readonly string[],
  declared: string,
): void {
  const byName = classes.get(service) ?? (new Map() as ByName);
  classes.set(service, byName);
  const end = writtenName(type).replace(/^.*_(?=.)/, '');
  const known = byName.get(end) ?? [];
  const added = templates.filter(
    (key) => !known.some(({ type: own, template }) => own === type && template === key),
  );
  if (added.length === 0) return;
  const others = known.filter((other) => other.type !== type);
  const renamed = others.find((other) => mayBeRenamed(type, other.type));
  if (renamed !== undefined) {
    throw new LockConfigError(
      declared,
      `has a key with $<class>, and there are the classes "${renamed.type.name}" and "${type.name}", which a bundler may have made ` +
        'of one name and may exchange in the next build. Write the name into the key of both. If they were written with one name, ' +
        "the bundler may keep names instead (esbuild's keepNames)",
    );
  }
  if (others.some((other) => other.type.name === type.name && added.includes(other.template))) {
    throw new LockConfigError(
      declared,
      `has a key with $<class>, and another class is named "${type.name}" and has the same key: both would have one lock. ` +
        'Write a name into the key of one of them',
    );
  }
  byName.set(end, [...known, ...added.map((template) => ({ type, template }))]);
}
