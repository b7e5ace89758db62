/** Statements of a module that make what it keeps between calls, each on one line, as TypeScript writes them. */
const VARIABLE = /^(?:export )?let (\w+)(?: = (.+))?;$/;
const OBJECT = /^(?:export )?const (\w+) = (new .+|\(shared\[.+\)|\[\]|\{\});$/;
const CALL = /^\w+\(\);$/;

/** Computed when it is needed first, and the same for all processes. */
const THE_SAME_FOR_ALL = /^let numbers;$/;

/** A module that can be made as it was when it had just been loaded: `simulatedInstance` gets a function for that. */
export function renewable(code: string): string {
  const again: string[] = [];
  const lines = code.split('\n').map((line) => {
    const [, name, value] = VARIABLE.exec(line) ?? OBJECT.exec(line) ?? [];
    if (name !== undefined && !THE_SAME_FOR_ALL.test(line)) again.push(`${name} = ${value ?? 'undefined'};`);
    else if (CALL.test(line)) again.push(line);
    return OBJECT.test(line) ? line.replace('const', 'let') : line;
  });
  if (again.length === 0) return code;
  return `${lines.join('\n')}\nglobalThis.simulatedInstance.renewals.push(() => { ${again.join(' ')} });\n`;
}
