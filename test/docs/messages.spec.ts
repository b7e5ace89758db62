import { describe, expect, it } from '@jest/globals';
import { readFileSync } from 'node:fs';
import { messages } from './messages.js';

const page = readFileSync(new URL('../../docs/troubleshooting.md', import.meta.url), 'utf8');
/** The texts that stand first in the rows of its tables. */
const texts = [...page.matchAll(/^\| ((?:`[^`]+`(?:, | *\|))+)/gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text),
);
const spoken = messages();
/** Shorter texts are words for use inside of others, but for rules of options and what a log line may end with. */
const sentences = spoken.filter((text) => /\w \w+ \w|^must be .|^is \w+$|more locks$/.test(text));

describe('docs/troubleshooting.md', () => {
  it.each(sentences)('explains: %s', (message) => {
    const quoted = [...page.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
    expect(quoted.filter((text) => text.includes(' ') && message.includes(text))).not.toEqual([]);
  });

  it.each(texts.filter((text) => text.includes(' ')))('quotes what there is: %s', (text) => {
    expect(spoken.filter((message) => message.includes(text))).not.toEqual([]);
  });
});
