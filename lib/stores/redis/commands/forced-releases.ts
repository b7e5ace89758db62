import type { Asker } from '../../../api/asker.js';
import type { QueueTerms, StoredLock } from '../../../store/lock-store.js';
import type { Deployment } from '../connection/deployment.js';
import { forcedText, NOBODY, QUEUE_CHANNEL, storedLock } from '../messages/queue-protocol.js';
import { read } from './inspection.js';
import type { ReleaseCommands } from './release-commands.js';
import type { ScriptCalls } from './script-calls.js';

/** Releases under way at once: enough to share commands, and not so many that the last one is answered too late. */
const AT_ONCE = 100;

type Holder = Pick<StoredLock['holders'][number], 'owner' | 'mode'>;

/** Takes locks away from their holders: each hold is given up as its own process would do it. */
export class ForcedReleases {
  constructor(
    private readonly connection: Deployment,
    private readonly calls: ScriptCalls,
    private readonly releasing: Pick<ReleaseCommands, 'release'>,
  ) {}

  /** @returns whether there was a holder. If two services take the lock away, the next owner keeps it. */
  async release(name: string, mode?: QueueTerms['mode'], asker?: Asker): Promise<boolean> {
    const found = await read(this.connection, this.calls, name);
    const { kind, holders: all } =
      found === null ? ({ kind: 'lock', holders: [] } as const) : storedLock(found);
    // A plain lock has no sides.
    const holders = all.filter((holder) => mode === undefined || (kind !== 'lock' && holder.mode === mode));
    // A replica may lack the lock, and refuses a release.
    if (holders.length === 0) await this.take(name, kind, { owner: NOBODY, mode: 'exclusive' });
    for (let from = 0; from < holders.length; from += AT_ONCE) {
      const some = holders.slice(from, from + AT_ONCE);
      await Promise.all(
        some.map(async (holder) => {
          await this.take(name, kind, holder);
          await this.tell(name, holder, asker);
        }),
      );
    }
    return holders.length > 0;
  }

  private take(name: string, kind: QueueTerms['kind'], { owner, mode }: Holder): Promise<unknown> {
    // The lease is given so that no script searches the queue: a holder has no entry there.
    return this.releasing.release({ name, owner, leaseTime: 1, queue: { kind, mode, capacity: 1 } });
  }

  /** The message is a hint, which the user may not be allowed to send. */
  private async tell(name: string, { owner }: Holder, asker: Asker | undefined): Promise<void> {
    const channel = QUEUE_CHANNEL + owner.slice(0, owner.lastIndexOf(':'));
    const node = this.connection.nodeOf(this.calls.keys(name).lock) ?? (await this.connection.nodes())[0];
    const text = `lost ${owner}${forcedText(asker)}`;
    await node?.send((client) => client.call('PUBLISH', channel, text)).catch(() => undefined);
  }
}
