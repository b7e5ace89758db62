import pg from 'pg';
import { FencingTable, pg as postgres } from '../../../../dist/fencing/index.js';
import { slices } from './slices.mjs';

/** µs of a transaction that reads and writes one row: as it is, guarded by a lease, and by one of three names. */
export async function play({ client: { service }, params: { port, times } }) {
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres' });
  await client.connect();
  const fences = new FencingTable({ dialect: 'postgres' });
  await client.query(fences.createTableSql());
  await client.query('CREATE TABLE orders (id INTEGER PRIMARY KEY, amount INTEGER NOT NULL)');
  await client.query('INSERT INTO orders SELECT n, 0 FROM generate_series(1, 1000) AS n');

  const guardOf = (lease) => () => fences.guard(postgres(client), lease);
  const transaction = (guard) => async () => {
    await client.query('BEGIN');
    await guard?.();
    const { rows } = await client.query('SELECT amount FROM orders WHERE id = $1', [7]);
    await client.query('UPDATE orders SET amount = $1 WHERE id = $2', [rows[0].amount + 1, 7]);
    await client.query('COMMIT');
  };
  const [one, several] = [await service.acquire('order:7'), await service.acquire(['a', 'b', 'c'])];
  const calls = [undefined, guardOf(one), guardOf(several)].map(transaction);
  const [bare, guarded, three] = await slices(times, ...calls);
  await Promise.all([one.release(), several.release()]);
  await client.end();
  return { bare, guarded, three };
}
