import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, type ClientRequest, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { ShopFigures } from './measures.js';

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const MAIN = fileOf('../../../sample-app/dist/main.js');

/** A buyer waits in line for 30 s at most. */
const PATIENCE = 45_000;

/** What a shop answers, or why it does not. */
export interface Answer {
  readonly status: number | string;
  readonly body: string;
}

/** What a process has, and what should not have happened in it since the look before. */
export interface ShopLook {
  readonly figures: ShopFigures;
  readonly unexpected: readonly string[];
}

/** An instance of the sample application, in a process of its own. */
export class Shop {
  #agent = newAgent();

  private constructor(
    private readonly child: ChildProcess,
    private readonly url: string,
  ) {}

  /** @param leak whether it leaks on purpose */
  static async open(redisUrl: string, leak: boolean): Promise<Shop> {
    const preloaded = ['./probe.mjs', ...(leak ? ['./leaks.mjs'] : [])].flatMap((file) => [
      '--import',
      new URL(file, import.meta.url).href,
    ]);
    const child = fork(MAIN, {
      execArgv: ['--expose-gc', '--no-warnings', ...preloaded],
      env: { ...process.env, REDIS_URL: redisUrl, PORT: '0', PAYMENT_TIME: '1' },
      silent: true,
    });
    let output = '';
    const url = await new Promise<string>((resolve, reject) => {
      const read = (chunk: Buffer) => {
        output = (output + chunk.toString()).slice(-4_000);
        const [url] = /http:\/\/[\d.:]+/.exec(output) ?? [];
        if (url !== undefined) resolve(url);
      };
      child.stdout!.on('data', read);
      child.stderr!.on('data', read);
      child.once('error', reject);
      child.once('exit', () => {
        reject(new Error(`The shop has ended:\n${output}`));
      });
    });
    return new Shop(child, url);
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  async ask(method: 'GET' | 'POST', path: string): Promise<Answer> {
    return await new Promise((resolve) => {
      const call = this.#request(method, path, { signal: AbortSignal.timeout(PATIENCE) });
      call.once('error', ({ message }) => {
        // The shop has closed a connection that was idle for seconds, and has not read what was sent on it.
        if (call.reusedSocket) resolve(this.ask(method, path));
        else resolve({ status: message, body: '' });
      });
      call.once('response', (response) => {
        let body = '';
        response.setEncoding('utf8').on('data', (text: string) => (body += text));
        response.once('end', () => {
          resolve({ status: response.statusCode!, body });
        });
        response.once('error', ({ message }) => {
          resolve({ status: message, body });
        });
      });
      call.end();
    });
  }

  /** Opens the board's stream of events, as a browser does. Returns what closes it. */
  watch(): () => void {
    const call = this.#request('GET', 'locks/events', { agent: false });
    // The end is the viewer's own doing.
    call.on('error', () => undefined);
    call.once('response', (response) => response.on('error', () => undefined).resume());
    call.end();
    return () => call.destroy();
  }

  /** What the process has open. The buyers' connections are closed before, and new ones opened after. */
  async look(): Promise<ShopLook> {
    this.#agent.destroy();
    this.#agent = newAgent();
    const answer = once(this.child, 'message');
    this.child.send('look');
    const [look] = (await answer) as [ShopLook];
    return look;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    if (this.hasEnded) return;
    const exit = once(this.child, 'exit');
    this.child.kill();
    await exit;
  }

  #request(method: string, path: string, options: { signal?: AbortSignal; agent?: false }): ClientRequest {
    return request(`${this.url}/${path}`, { method, agent: this.#agent, ...options });
  }
}

const newAgent = () => new Agent({ keepAlive: true, maxSockets: 200 });
