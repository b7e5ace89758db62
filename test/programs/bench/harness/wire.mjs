import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

/** `+1795192936.746327 [0 lua] "SET" …` or `[0 127.0.0.1:35716]` */
const LINE = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)"/;
const MARK = 'echo';
/** What clients send now and then to keep their connections and their scripts. */
const UPKEEP = new Set(['ping', 'hello', 'client', 'subscribe', 'unsubscribe', 'auth', 'select', 'script']);

/** Which commands a contender sends, and which its scripts run, as MONITOR sees it. */
export class Wire {
  sent = new Map();
  inner = new Map();

  /** Watches one server while `play` runs, together with all that was watched before. */
  async learn({ url, control }, play) {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    const lines = createInterface({ input: socket });
    const begun = once(lines, 'line');
    const seen = new Promise((resolve) => {
      lines.on('line', (line) => {
        const [, source, name = ''] = LINE.exec(line) ?? [];
        const command = name.toLowerCase();
        if (command === MARK) resolve();
        else if (command !== '') add(source === 'lua' ? this.inner : this.sent, command);
      });
    });
    try {
      socket.write('MONITOR\r\n');
      await begun;
      await play();
      // Everything before the mark has been seen when the mark has.
      await control.echo(MARK);
      await seen;
    } finally {
      socket.destroy();
    }
  }

  /**
   * The share of its calls that clients have sent: all or nothing but for a command that is used both ways.
   * @returns undefined for a command that was not seen
   */
  shareSent(command) {
    const sent = this.sent.get(command) ?? 0;
    const inner = this.inner.get(command) ?? 0;
    if (sent + inner > 0) return sent / (sent + inner);
    return UPKEEP.has(command) ? 1 : undefined;
  }
}

const add = (counts, command) => counts.set(command, (counts.get(command) ?? 0) + 1);
