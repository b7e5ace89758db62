// One buyer of the last seat, in a process of its own: node buyer.js <Redis URL> <file of the database> <lock|fence>
// Prints each step before it takes a moment for it, so that the demo can stop the process there.
import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import libsql from 'libsql';
import { LockService } from 'nestjs-distributed-lock';
import { FencingTable } from 'nestjs-distributed-lock/fencing';

/** ms: short, so that the demo need not wait long for the end of a lease. */
const LEASE = 600;
const MOMENT = 200;
const SEATS = 1;

Logger.overrideLogger(false); // a lost lease is the subject here

const [url = '', file = '', mode] = process.argv.slice(2);
const locks = new LockService({ connection: url, leaseTime: LEASE });
const fences = new FencingTable({ dialect: 'sqlite' });
const database = new libsql(file);

async function step(name: string): Promise<void> {
  console.log(name);
  await sleep(MOMENT);
}

/** Right for one buyer at a time only, as most business code is. */
async function buy(): Promise<string> {
  const { sold } = database.prepare('SELECT sold FROM show').get() as { sold: number };
  if (sold >= SEATS) return 'sold out';
  await step('pays');
  database.prepare('UPDATE show SET sold = ?').run(sold + 1);
  return 'bought';
}

/** The guard is the first statement. Everything behind it is rolled back when it throws. */
async function buyFenced(): Promise<string> {
  database.exec('BEGIN');
  try {
    await fences.guard(execute);
    const answer = await buy();
    database.exec('COMMIT');
    return answer;
  } catch (error) {
    database.exec('ROLLBACK');
    throw error;
  }
}

/** SQLite has one writer at a time, and tells the next one to come again. */
async function execute(sql: string, parameters: unknown[]): Promise<number> {
  await step('asks the database'); // a holder may be paused here, too, after its last look at the lease
  const statement = database.prepare(sql);
  for (;;) {
    try {
      return statement.run(parameters).changes;
    } catch (error) {
      if ((error as { code?: string }).code !== 'SQLITE_BUSY') throw error;
      await step('waits for the other transaction');
    }
  }
}

try {
  const answer = await locks.using('show', async () => {
    await step('has the lock');
    return await (mode === 'fence' ? buyFenced() : buy());
  });
  console.log(answer);
} catch (error) {
  if ((error as { reason?: string }).reason !== 'fenced') throw error;
  console.log('refused');
}
database.close();
await locks.close();
