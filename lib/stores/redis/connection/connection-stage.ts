import type { Redis } from 'ioredis';

/** A command can leave over the connection: one that is being given up, or gone already, may still count as ready. */
export const isOpen = ({ status, stream }: Pick<Redis, 'status' | 'stream'>): boolean =>
  status === 'ready' && stream.writable;

/** How far a client has come, in the words of ioredis, and which answer of the server it waits for. */
export function stageOf({ status, stream }: Pick<Redis, 'status' | 'stream'>): string {
  // A port without TLS takes the handshake for the beginning of a command, and waits for the rest of it.
  if (status === 'connecting' && isShakingHands(stream))
    return `${status}: the server has not answered the TLS handshake`;
  if (status === 'ready' && !stream.writable) return `${status}: its connection has ended`;
  // ioredis does not tell that a server loads its data, and asks it again.
  return status === 'connect' ? `${status}: the server has not answered yet, or loads its data` : status;
}

/** There is a connection. A client of sentinels has no stream, or that of its last connection, until it knows the master. */
const isShakingHands = (stream: Redis['stream'] | undefined): boolean =>
  stream !== undefined && 'encrypted' in stream && !stream.connecting && !stream.destroyed;
