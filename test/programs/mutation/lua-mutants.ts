import type { Mutant } from './mutant.js';

const OTHER = new Map([
  ['<', '<='],
  ['<=', '<'],
  ['>', '>='],
  ['>=', '>'],
  ['==', '~='],
  ['~=', '=='],
  ['and', 'or'],
  ['or', 'and'],
  ['+', '-'],
  ['-', '+'],
  ['true', 'false'],
  ['false', 'true'],
  ['math.min', 'math.max'],
  ['math.max', 'math.min'],
]);
const TOKEN = / (<=?|>=?|==|~=|and|or|[+-]) |\b(true|false|math\.min|math\.max)\b/dg;
const CONDITION = /\b(?:if|while) (.+?) (?:then|do)\b/d;
const CALL = /^\s*([\w.]+\(.*\))$/d;

/** Line by line: the scripts are written that way. */
export function luaMutants(file: string, source: string): Mutant[] {
  const mutants: Mutant[] = [];
  let offset = 0;
  source.split('\n').forEach((text, index) => {
    const replace = (range: [number, number] | undefined, change: (before: string) => string | undefined) => {
      if (range === undefined) return;
      const before = text.slice(...range);
      const after = change(before);
      // An odd number of quotes before it: inside of a string.
      if (after === undefined || (text.slice(0, range[0]).split("'").length - 1) % 2 === 1) return;
      mutants.push({
        file,
        line: index + 1,
        before,
        after,
        start: offset + range[0],
        end: offset + range[1],
      });
    };
    if (!/^\s*--/.test(text)) {
      replace(CONDITION.exec(text)?.indices?.[1], (before) => `not (${before})`);
      replace(CALL.exec(text)?.indices?.[1], () => '');
      for (const { indices } of text.matchAll(TOKEN)) {
        replace(indices?.[1] ?? indices?.[2], (before) => OTHER.get(before));
      }
    }
    offset += text.length + 1;
  });
  return mutants;
}
