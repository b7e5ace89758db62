import { openStderr } from './stderr.js';

/** Sequences of SGR: on, and off again. */
const STYLES = { bold: [1, 22], dim: [2, 22], red: [31, 39], green: [32, 39], yellow: [33, 39] } as const;

type Environment = Readonly<Record<string, string | undefined>>;

/** The output of the program: results to stdout, everything else to stderr. */
export class Screen {
  readonly isTerminal: boolean;
  private readonly hasColour: boolean;
  private printed: Promise<void> | undefined;
  private complained: Promise<void> | undefined;

  constructor(
    readonly environment: Environment = process.env,
    private readonly out: NodeJS.WriteStream = process.stdout,
    private readonly err: NodeJS.WritableStream = openStderr(),
  ) {
    // A stream that is no terminal has no such property.
    this.isTerminal = (out as { isTTY?: boolean }).isTTY === true;
    const { NO_COLOR = '', TERM } = environment;
    this.hasColour = this.isTerminal && NO_COLOR === '' && TERM !== 'dumb';
  }

  /** Columns of the terminal; Infinity for a file or a pipe, which cut nothing. */
  get width(): number {
    return this.isTerminal ? this.out.columns || 80 : Infinity;
  }

  get height(): number {
    return this.isTerminal ? this.out.rows || 24 : Infinity;
  }

  /** Calls back when the terminal has another size. Returns what ends it. */
  onResize(callback: () => void): () => void {
    this.out.on('resize', callback);
    return () => this.out.off('resize', callback);
  }

  print(line: string): void {
    this.write(`${line}\n`);
  }

  /** For people, beside the results. */
  complain(line: string): void {
    this.complained = written(this.err, `${line}\n`);
  }

  /** Text as it is, with the sequences of a terminal. */
  write(text: string): void {
    this.printed = written(this.out, text);
  }

  /** Resolves when all is out. Never if stdout fails, whose error says so. */
  async flush(): Promise<void> {
    await Promise.all([this.printed, this.complained]);
  }

  style(style: keyof typeof STYLES, text: string): string {
    const [on, off] = STYLES[style];
    return this.hasColour ? `\x1b[${String(on)}m${text}\x1b[${String(off)}m` : text;
  }
}

/** Resolves when the text is out. */
const written = (stream: NodeJS.WritableStream, text: string): Promise<void> =>
  new Promise((resolve) => {
    stream.write(text, (error) => {
      if (error === null || error === undefined || stream !== process.stdout) resolve();
    });
  });
