import strict from 'node:assert/strict';

/** Without a message `ok` would read the whole file to quote its line, which takes seconds if the file is a bundle. */
function ok(value: unknown, message: string | Error = 'a condition is false'): asserts value {
  strict.ok(value, message);
}

type Assert = Omit<typeof strict, 'ok'> & { readonly ok: typeof ok };

/** As node:assert/strict. */
const assert: Assert = { ...strict, ok };

export default assert;
