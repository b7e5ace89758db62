import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { assertLocked, LockKindMismatchError, LockLostError, LockService } from '../../lib/index.js';
import { inQuotes } from '../../lib/runtime/text.js';
import { loggerOfEach } from '../support/logger.js';

/** A name as a stranger would give it: it ends the line and the quotation, turns red, and goes on like the log itself. */
const FORGED =
  'order:7" (owner x): released\n\u001B[31m[Nest] ERROR Lost the lock "payments\u2028\u202E\u0085';
const UNSAFE = /[\u0000-\u001F\u007F-\u009F\u2028\u2029\u202A-\u202E\u2066-\u2069]/;

describe('A name from outside (pitfall 52)', () => {
  const logger = loggerOfEach();
  let locks: LockService;

  beforeEach(() => {
    locks = new LockService({ store: 'memory' });
  });

  afterEach(async () => {
    await locks.onApplicationShutdown();
  });

  it('is one line of the log, in quotes that it cannot end', async () => {
    await locks.acquire(FORGED);
    await locks.forceRelease(FORGED);
    const lines = logger.lines('error').filter((line) => line.startsWith('Lost'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toMatch(UNSAFE);
    expect(lines[0]).toContain(`Lost the lock "${inQuotes(FORGED)}" (owner `);
  });

  it('is the same in every error that names it, and the error has it as it was', async () => {
    const lease = await locks.acquire(FORGED);
    const errors: unknown[] = [
      await locks.acquire(FORGED, { signal: AbortSignal.abort() }).catch((error: unknown) => error),
      await locks
        .getFairLock(FORGED)
        .acquire()
        .catch((error: unknown) => error),
    ];
    await lease.release();
    errors.push(await lease.extend(1_000).catch((error: unknown) => error));
    expect(errors[1]).toBeInstanceOf(LockKindMismatchError);
    expect(errors[2]).toBeInstanceOf(LockLostError);
    for (const error of errors as { message: string; key: string }[]) {
      expect(error.message).not.toMatch(UNSAFE);
      expect(error.message).toContain(`"${inQuotes(FORGED)}"`);
      expect(error.key).toBe(FORGED);
    }
    expect(() => {
      assertLocked(FORGED);
    }).toThrow(`the lock "${inQuotes(FORGED)}"`);
  });

  it.each([
    ['order:\u200b7', String.raw`order:\u200b7`],
    ['\ufefforder\u00ad:\u2060\u3164', String.raw`\ufefforder\u00ad:\u2060\u3164`],
    ['order\ufe0f\u{e0041}', String.raw`order\ufe0f\udb40\udc41`],
    ['❤\u200border', String.raw`❤\u200border`],
    ['❤\ufe0f\u200d\ufe0f', String.raw`❤️\u200d\ufe0f`],
    ['👍\ufe0f', String.raw`👍\ufe0f`],
    ['🔥\u200d🔒', String.raw`🔥\u200d🔒`],
    ['🏴\u{e0075}\u{e007f}', String.raw`🏴\udb40\udc75\udb40\udc7f`],
  ])('shows a character of which nothing is seen (%#)', (name, shown) => {
    expect(inQuotes(name)).toBe(shown);
  });

  it.each([
    '❤️',
    '👨‍👩‍👧',
    '👩🏽‍🚀',
    '1️⃣',
    '🏳️‍🌈',
    '🇩🇪',
    '\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}',
  ])('keeps the emoji %s whole', (emoji) => {
    expect(inQuotes(`a ${emoji} b`)).toBe(`a ${emoji} b`);
  });

  it('reads as it is where it has nothing of the kind', () => {
    expect(inQuotes('order:7 – Größe {α} 数')).toBe('order:7 – Größe {α} 数');
  });
});
