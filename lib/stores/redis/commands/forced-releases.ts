import type { LockStore, StoredLock } from '../../../store/lock-store.js';
import type { Deployment } from '../connection/deployment.js';
import { forcedText, NOBODY, storedLock } from '../messages/queue-protocol.js';
import { read } from './inspection.js';
import type { ReleaseCommands } from './release-commands.js';
import { tell } from './release-requests.js';
import type { ScriptCalls } from './script-calls.js';

/** Releases under way at once: enough to share commands, and not so many that the last one is answered too late. */
const AT_ONCE = 100;

type Holder = Pick<StoredLock['holders'][number], 'owner' | 'mode'>;

/** Takes locks away from their holders: each hold is given up as its own process would do it. */
export const forcedReleases =
  (
    connection: Deployment,
    calls: ScriptCalls,
    releasing: Pick<ReleaseCommands, 'release'>,
  ): LockStore['forceRelease'] =>
  async (name, mode, asker) => {
    const found = await read(connection, calls, name);
    const { kind, holders: all } = found === null ? FREE : storedLock(found);
    // A plain lock has no sides.
    const holders = all.filter((holder) => mode === undefined || (kind !== 'lock' && holder.mode === mode));
    const take = ({ owner, mode }: Holder) =>
      // The lease is given so that no script searches the queue: a holder has no entry there.
      releasing.release({ name, owner, leaseTime: 1, queue: { kind, mode, capacity: 1 } });
    // A replica may lack the lock, and refuses a release.
    if (holders.length === 0) await take({ owner: NOBODY, mode: 'exclusive' });
    for (let from = 0; from < holders.length; from += AT_ONCE) {
      const taken = holders.slice(from, from + AT_ONCE).map(async (holder) => {
        await take(holder);
        // The message is a hint, which the user may not be allowed to send.
        await tell(connection, calls, name, holder.owner, forcedText(holder.owner, asker)).catch(
          () => undefined,
        );
      });
      await Promise.all(taken);
    }
    return holders.length > 0;
  };

const FREE = { kind: 'lock', holders: [] } as const;
