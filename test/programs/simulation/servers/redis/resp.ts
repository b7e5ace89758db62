import { Pairs, Refusal, type Reply, Several, Status } from './replies.js';

/** Reads the commands of a client as they come in, in pieces of any size. */
export class RequestReader {
  private rest = '';

  /** @returns the commands that are complete now, each with its name first */
  read(chunk: Uint8Array): string[][] {
    this.rest += Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength).toString('latin1');
    const commands: string[][] = [];
    for (let at = 0; ;) {
      const found = this.commandAt(at);
      if (found === undefined) {
        this.rest = this.rest.slice(at);
        return commands;
      }
      commands.push(found.command);
      at = found.end;
    }
  }

  private commandAt(start: number): { command: string[]; end: number } | undefined {
    const { rest } = this;
    const head = this.numberAt(start, '*');
    if (head === undefined) return undefined;
    let { end } = head;
    const command: string[] = [];
    while (command.length < head.number) {
      const length = this.numberAt(end, '$');
      if (length === undefined || rest.length < length.end + length.number + 2) return undefined;
      command.push(rest.slice(length.end, length.end + length.number));
      end = length.end + length.number + 2;
    }
    return { command, end };
  }

  private numberAt(start: number, mark: string): { number: number; end: number } | undefined {
    const { rest } = this;
    if (start >= rest.length) return undefined;
    if (rest[start] !== mark)
      throw new Error(`not a command: ${JSON.stringify(rest.slice(start, start + 20))}`);
    const end = rest.indexOf('\r\n', start);
    return end < 0 ? undefined : { number: Number(rest.slice(start + 1, end)), end: end + 2 };
  }
}

export type Protocol = 2 | 3;

/** An answer as it goes over the wire. */
export function encoded(reply: Reply, protocol: Protocol): string {
  if (typeof reply === 'string') return `$${String(reply.length)}\r\n${reply}\r\n`;
  if (typeof reply === 'number') return `:${String(reply)}\r\n`;
  if (reply === null) return protocol === 3 ? '_\r\n' : '$-1\r\n';
  if (reply instanceof Status) return `+${reply.text}\r\n`;
  if (reply instanceof Refusal) return `-${reply.message}\r\n`;
  if (reply instanceof Several) return reply.pushes.map((push) => pushed(push, protocol)).join('');
  const items = reply instanceof Pairs ? reply.items : reply;
  const head =
    reply instanceof Pairs && protocol === 3 ? `%${String(items.length / 2)}` : `*${String(items.length)}`;
  return `${head}\r\n${items.map((item) => encoded(item, protocol)).join('')}`;
}

/** A message that answers no command. */
export const pushed = (items: readonly Reply[], protocol: Protocol): string =>
  `${protocol === 3 ? '>' : '*'}${String(items.length)}\r\n${items.map((item) => encoded(item, protocol)).join('')}`;
