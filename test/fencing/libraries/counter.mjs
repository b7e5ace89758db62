// Usage: node counter.mjs <connection to Redis as JSON> <PostgreSQL port> <guard>
//
// Increments a counter in PostgreSQL by read and write, each time in a transaction under the lock, until stdin ends. Prints a
// line when a transaction has read, and for each commit. The guards other than `first` are wrong on purpose.
import { Logger } from '@nestjs/common';
import pg from 'pg';
import { isLockError, LockService } from '../../../dist/index.js';
import { FencingTable, pg as inTransaction } from '../../../dist/fencing/index.js';

Logger.overrideLogger(false); // lost leases are the subject here

/** ms between the read and the write. */
const WORK = 200;

const [connection, port, guard] = process.argv.slice(2);
const locks = new LockService({ connection: JSON.parse(connection), leaseTime: 300, waitTime: 1_000 });
const fences = new FencingTable({ dialect: 'postgres' });
const client = new pg.Client({ host: '127.0.0.1', port: Number(port), user: 'postgres' });
await client.connect();
let isEnding = false;
process.stdin.resume().once('end', () => {
  isEnding = true;
});

/** The check is one statement, the write another one at the end: no row is locked between them. */
async function check({ name, fencingToken }) {
  const { rows } = await client.query('SELECT token FROM lock_fences WHERE name = $1', [name]);
  if (Number(rows[0]?.token ?? 0) > fencingToken) throw new Error('fenced');
}

async function increment({ name, owner, fencingToken, fencingTokens }) {
  // A pause may come right behind the check of the lease's own time, so that the holder does not know of its loss.
  const lease = { name, owner, fencingToken, fencingTokens, assertHeld: () => undefined };
  await client.query('BEGIN');
  try {
    if (guard === 'first') await fences.guard(inTransaction(client), lease);
    if (guard === 'unlocked') await check(lease);
    const { rows } = await client.query('SELECT amount FROM counter');
    console.log('begun');
    await new Promise((resolve) => setTimeout(resolve, WORK));
    await client.query('UPDATE counter SET amount = $1', [rows[0].amount + 1]);
    if (guard === 'last' || guard === 'unlocked') await fences.guard(inTransaction(client), lease);
    await client.query('COMMIT');
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
  console.log('committed');
}

while (!isEnding) {
  try {
    await locks.using('counter', increment);
  } catch (error) {
    if (!isLockError(error) && error.message !== 'fenced') throw error;
    console.log('refused');
  }
}
await locks.close();
await client.end();
