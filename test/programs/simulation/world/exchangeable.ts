/** Statements of a module that make what it keeps between calls, each on one line, as TypeScript writes them. */
const VARIABLE = /^(?:export )?let (\w+)(?: = (.+))?;$/;
const OBJECT = /^(?:export )?const (\w+) = (new (?!Weak).+|\(shared\[.+\));$/;
const CALL = /^\w+\(\);$/;

/** Computed when it is needed first, and the same for all processes. */
const THE_SAME_FOR_ALL = /^let numbers;$/;

/** What a module keeps between calls. */
export interface Kept {
  /** Makes it as it is when the module is loaded. */
  renew(): void;
  take(): readonly unknown[];
  put(values: readonly unknown[]): void;
}

/**
 * A module that gives what it keeps to `simulatedInstance`, so that it can be exchanged. What it keeps by an object, in a
 * WeakMap, stays: no two processes have the same object.
 */
export function exchangeable(code: string): string {
  const names: string[] = [];
  const again: string[] = [];
  const lines = code.split('\n').map((line) => {
    const [, name, value = 'undefined'] = VARIABLE.exec(line) ?? OBJECT.exec(line) ?? [];
    if (name !== undefined && !THE_SAME_FOR_ALL.test(line)) {
      names.push(name);
      again.push(`${name} = ${value};`);
    } else if (CALL.test(line)) again.push(line);
    return OBJECT.test(line) ? line.replace('const', 'let') : line;
  });
  if (names.length === 0) return code;
  const put = names.map((name, index) => `${name} = values[${String(index)}];`);
  return `${lines.join('\n')}
globalThis.simulatedInstance.kept.push({
  renew: () => { ${again.join(' ')} },
  take: () => [${names.join(', ')}],
  put: (values) => { ${put.join(' ')} },
});
`;
}
