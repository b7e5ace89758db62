/** µs a command may take before the server's slow log has it. */
const SLOW = 100;

/** All held locks among many other keys, as the board reads them. */
export const list = {
  id: 'list',
  title: '`list` of 10,000 held locks among 1,000,000 other keys',
  contenders: ['ours'],
  rounds: 1,
  stage: { fresh: true, ttl: 60_000 },
  figures: ['listSeconds', 'slowestCommand', 'listed'],
  quick: ['ours'],
  async measure(cast, { quick }) {
    const [{ control }] = cast.servers;
    const share = quick ? 100 : 1;
    await control.eval(
      "for n = 1, tonumber(ARGV[1]) do redis.call('SET', 'other:' .. n, n) end",
      0,
      1_000_000 / share,
    );
    await cast.play('hold', { step: 'take', name: 'listed', leases: 10_000 / share });
    await control.call('SLOWLOG', 'RESET');
    await control.config('SET', 'slowlog-log-slower-than', SLOW, 'slowlog-max-len', 1_000);
    const [{ seconds, count }] = await cast.play('list');
    const slow = await control.call('SLOWLOG', 'GET', 1_000);
    await cast.play('hold', { step: 'leave' });
    return {
      listSeconds: seconds,
      slowestCommand: Math.max(SLOW, ...slow.map(([, , micros]) => micros)) / 1_000,
      listed: count,
    };
  },
};
