const VIEWERS = 1_000;
const LOCKS = 1_000;

/** The board in the process that renews leases: its viewers take no lease away. */
export const board = {
  id: 'board',
  title: `3 leases of 3 s in the process whose board has ${VIEWERS.toLocaleString('en')} viewers of ${LOCKS.toLocaleString('en')} locks`,
  contenders: ['ours'],
  rounds: 1,
  stage: { fresh: true, ttl: 60_000 },
  figures: ['arrival', 'longestBlock', 'kept', 'served'],
  quick: [],
  async measure(cast) {
    const [{ control, url }] = cast.servers;
    const pipeline = control.pipeline();
    // As other processes would have taken them.
    for (let n = 0; n < LOCKS; n++) {
      const key = `lock:cart:${n}`;
      pipeline.hset(key, '7d5f2c1e-0000-4000-8000-000000000000:7', 1).pexpire(key, 86_400_000);
    }
    await pipeline.exec();
    const [{ arrival, longest, kept, served }] = await cast.play('board', {
      url,
      viewers: VIEWERS,
      seconds: 10,
    });
    return { arrival, longestBlock: longest, kept, served };
  },
};
