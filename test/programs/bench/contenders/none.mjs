const waiting = new Set();

/** No lock at all: whoever asks has it, and whoever waits has a bare promise. */
export const open = () => ({
  wait: (name) => held(new Promise((resolve, reject) => waiting.add({ name, resolve, reject }))),
  lock: async () => async () => undefined,
  close: async () => undefined,
});

async function held(acquisition) {
  const lease = await acquisition;
  return () => lease.release();
}
