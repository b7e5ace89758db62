import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Redis } from 'ioredis';

/** What clients send to a server, as its MONITOR command tells. */
export class Monitor {
  /** Each as it was sent, name first. Complete after `stop()`. */
  readonly commands: string[][] = [];
  private readonly marker = randomUUID();

  private constructor(
    private readonly socket: Socket,
    private readonly assertions: Redis,
  ) {}

  /** @param ownPorts the local ports of connections that are left out */
  static async start(port: number, assertions: Redis, ownPorts: ReadonlySet<number>): Promise<Monitor> {
    // Only a connection that is there can be told from others.
    await assertions.ping();
    const socket = connect({ port, host: '127.0.0.1' });
    socket.on('error', () => undefined);
    const monitor = new Monitor(socket, assertions);
    const lines = createInterface({ input: socket });
    socket.write('MONITOR\r\n');
    await once(lines, 'line');
    lines.on('line', (line) => {
      const [, source, rest = ''] = /^\S+ \[\d+ (\S+)\] (.*)$/.exec(line) ?? [];
      if (line.includes(monitor.marker)) socket.end();
      else if (source !== undefined && source !== 'lua' && !ownPorts.has(Number(source.split(':').pop())))
        monitor.commands.push(argumentsOf(rest));
    });
    return monitor;
  }

  /** Everything that the server got before this call is in `commands` then. */
  async stop(): Promise<void> {
    if (this.socket.closed) return;
    const closed = once(this.socket, 'close');
    this.assertions.echo(this.marker).catch(() => undefined);
    await closed;
  }
}

const QUOTED = /"((?:[^"\\]|\\.)*)"/g;
const LINE = /^"(?:[^"\\]|\\.)*"(?: "(?:[^"\\]|\\.)*")*$/;

function argumentsOf(line: string): string[] {
  if (LINE.test(line))
    return [...line.matchAll(QUOTED)].map(([, text = '']) => text.replace(/\\(["\\])/g, '$1'));
  // Valkey 8.1 marks neither quotes nor backslashes inside of an argument.
  return line.slice(1, -1).split('" "');
}
