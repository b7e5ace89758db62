import { EventEmitter } from 'node:events';
import type { Redis, RedisOptions } from 'ioredis';
import { answered } from './replies.js';

/** A command as it was sent. */
type Sent = readonly unknown[];

/**
 * A client of ioredis without a connection: a function answers its commands, and a test says how far it has come. For what a
 * real connection does only at one moment, or not twice in the same way.
 */
export class ScriptedClient extends EventEmitter {
  status = 'ready';
  readonly sent: Sent[] = [];
  /** What the client was told to do with its connection. */
  readonly steps: string[] = [];
  condition: { select: number } | undefined;
  private heard = 0;
  readonly stream = {
    writable: true,
    bytesRead: 0,
    cork: () => this.steps.push('cork'),
    uncork: () => this.steps.push('uncork'),
    destroy: () => undefined,
  };
  readonly ping = this.command('ping');
  readonly select = this.command('select');
  readonly subscribe = this.command('subscribe');
  readonly ssubscribe = this.command('ssubscribe');
  readonly unsubscribe = this.command('unsubscribe');
  readonly sunsubscribe = this.command('sunsubscribe');
  readonly quit = this.command('quit');
  /** With it, a pipeline gets no answer. */
  lost: Error | undefined;

  /** @param answer of the server; an error is thrown */
  constructor(
    public answer: (command: Sent) => unknown = () => 'OK',
    readonly options: RedisOptions = {},
  ) {
    super();
    // The server always gives a sign of life.
    Object.defineProperty(this.stream, 'bytesRead', { get: () => ++this.heard });
  }

  get redis(): Redis {
    return this as unknown as Redis;
  }

  createBuiltinCommand(name: string) {
    return { string: this.command(name) };
  }

  pipeline() {
    const commands: Sent[] = [];
    const add =
      (name: string) =>
      (...args: Sent) => {
        commands.push([name, ...args]);
        return pipeline;
      };
    const pipeline = {
      asking: add('asking'),
      eval: add('eval'),
      evalsha: add('evalsha'),
      exec: () =>
        this.lost === undefined
          ? Promise.all(
              commands.map((command) =>
                this.ask(command).then(
                  (reply) => [null, reply],
                  (error: unknown) => [error, undefined],
                ),
              ),
            )
          : Promise.reject(this.lost),
    };
    return pipeline;
  }

  call(...command: Sent): Promise<unknown> {
    return this.ask(command);
  }

  connect(): Promise<void> {
    this.steps.push('connect');
    return Promise.resolve();
  }

  disconnect(reconnects = false): void {
    this.steps.push(reconnects ? 'reconnect' : 'disconnect');
  }

  /** Says that the connection has come to this, as ioredis does. */
  comeTo(status: 'ready' | 'close' | 'end'): void {
    this.status = status;
    this.emit(status);
  }

  private command(name: string) {
    return (...args: Sent): Promise<unknown> => this.ask([name, ...args]);
  }

  private ask(command: Sent): Promise<unknown> {
    this.sent.push(command);
    return answered(() => this.answer(command));
  }
}
