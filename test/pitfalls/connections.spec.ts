/**
 * Connections. The number is that of a list of verified defects of other lock libraries; what is tested is that ours
 * does not have it.
 *
 * 59  A refused SELECT leaves the connection on database 0: locks of two databases under one name.
 * 64  Health is `up` while no lock can be taken: scripts forbidden, replicas missing, a wrong password.
 */
import { expect, it } from '@jest/globals';
import { Stage } from './stage.js';

const stage = Stage.set();

it('takes no lock where SELECT is refused, instead of one in database 0 (pitfall 59)', async () => {
  await stage.redis.call('ACL', 'SETUSER', 'app', 'on', '>word', '~*', '&*', '+@all', '-select');
  const locks = stage.service({ connection: `${stage.server.url.replace('//', '//app:word@')}/1` });
  await expect(locks.acquire('order:7')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', permanent: true });
  expect(await stage.redis.dbsize()).toBe(0);
});

it.each([
  ['scripts are forbidden', ['-evalsha', '-eval'], ''],
  ['a command of theirs is forbidden', ['-hset'], ''],
  ['the password is wrong', [], 'wrong-'],
])('is down, with the reason, where %s (pitfall 64)', async (_, rules, prefix) => {
  await stage.redis.call('ACL', 'SETUSER', 'app', 'reset', 'on', '>word', '~*', '&*', '+@all', ...rules);
  const url = stage.server.url.replace('//', `//app:${prefix}word@`);
  const { status, nodes } = await stage.service({ connection: url }).health();
  expect([status, nodes[0]?.error]).toEqual([
    'down',
    expect.stringMatching(/NOPERM|executing the script|ACL failure|WRONGPASS/),
  ]);
});
