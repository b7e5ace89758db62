import { describe, expect, it } from '@jest/globals';
import { isMessage, replyEnd } from './resp.js';

const REPLIES = {
  'a status': '+OK\r\n',
  'an error': '-NOSCRIPT No matching script\r\n',
  'an integer': ':-1\r\n',
  'a bulk string with a line break': '$6\r\na\r\nb\r\n\r\n',
  'an empty bulk string': '$0\r\n\r\n',
  'a RESP2 null': '$-1\r\n',
  'a RESP2 null array': '*-1\r\n',
  'a RESP3 null': '_\r\n',
  'a boolean': '#t\r\n',
  'a double': ',-1\r\n',
  'a big number': '(-1\r\n',
  'a verbatim string': '=7\r\ntxt:one\r\n',
  'a bulk error': '!5\r\nERR x\r\n',
  'an empty array': '*0\r\n',
  'nested arrays': '*2\r\n*2\r\n:1\r\n$1\r\na\r\n*1\r\n*-1\r\n',
  'a map': '%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n$1\r\n*\r\n',
  'a set': '~2\r\n:1\r\n:2\r\n',
  'an attribute and its value': '|1\r\n+ttl\r\n:9\r\n$2\r\nhi\r\n',
};

const message = (type: string, kind: string) =>
  `${type}3\r\n$${String(kind.length)}\r\n${kind}\r\n$1\r\nc\r\n$1\r\n0\r\n`;

describe('replyEnd', () => {
  it.each(Object.entries(REPLIES))('finds the end of %s, and no end of any part', (_, text) => {
    const between = Buffer.from(`:1\r\n${text}:2\r\n`);
    expect(replyEnd(between, 4)).toBe(4 + text.length);
    const whole = Buffer.from(text);
    for (let length = 0; length < text.length; length++) {
      expect(replyEnd(whole.subarray(0, length), 0)).toBeUndefined();
    }
  });
});

describe('isMessage', () => {
  it.each(['*', '>'])('knows messages of type %s from other replies', (type) => {
    expect(isMessage(Buffer.from(message(type, 'message')))).toBe(true);
    expect(isMessage(Buffer.from(message(type, 'smessage')))).toBe(true);
    expect(isMessage(Buffer.from(message(type, 'subscribe')))).toBe(false);
    expect(isMessage(Buffer.from(message(type, 'ssubscribe')))).toBe(false);
  });

  it.each(Object.entries(REPLIES))('takes %s for none', (_, text) => {
    expect(isMessage(Buffer.from(text))).toBe(false);
  });
});
