import { createHash } from 'node:crypto';
import { PRELUDE } from './lua-prelude.js';
import { LuaState, TYPES } from './lua-state.js';
import { digitsOf } from './numbers.js';
import { Refusal, type Reply, Status } from './replies.js';

export interface Compiled {
  readonly digest: string;
  readonly reference: number;
}

export interface Parts {
  readonly keys: readonly string[];
  readonly args: readonly string[];
}

/** Sends a command of a script. A refusal is an answer, too. */
type Send = (command: readonly string[]) => Reply;

const sendNothing: Send = () => new Refusal('ERR no script runs');

/** The interpreter that all servers share. What a script leaves behind is in its server alone. */
export class Lua {
  private readonly compiled = new Map<string, Compiled>();
  private send = sendNothing;
  /** What is wrong with the model, and not with the script. */
  private fault: unknown;
  private readonly handler: number;

  private constructor(private readonly state: LuaState) {
    state.load(PRELUDE, '@prelude');
    state.pushFunction(() => (this.onCall() ? 1 : state.raise()));
    state.pushFunction(() => {
      this.onCall();
      return 1;
    });
    state.pushFunction(() => this.onDecode());
    if (!state.call(3, 1)) throw new Error(state.text(-1));
    this.handler = state.keep();
  }

  static async open(): Promise<Lua> {
    return new Lua(await LuaState.open());
  }

  /** @throws Refusal */
  compile(source: string): Compiled {
    let compiled = this.compiled.get(source);
    if (compiled === undefined) {
      const digest = createHash('sha1').update(source, 'latin1').digest('hex');
      try {
        this.state.load(source, '@user_script');
      } catch (error) {
        throw new Refusal(`ERR Error compiling script (new function): ${(error as Error).message}`);
      }
      compiled = { digest, reference: this.state.keep() };
      this.compiled.set(source, compiled);
    }
    return compiled;
  }

  /** @throws Refusal */
  run({ digest, reference }: Compiled, { keys, args }: Parts, send: Send): Reply {
    const { state } = this;
    state.pushKept(this.handler);
    state.pushKept(reference);
    this.setTexts('KEYS', keys);
    this.setTexts('ARGV', args);
    this.send = send;
    const succeeded = state.call(0, 1, 1);
    this.send = sendNothing;
    const reply = succeeded ? this.take() : this.failure(digest);
    state.top = 0;
    if (this.fault !== undefined) throw this.fault as Error;
    return reply;
  }

  private setTexts(name: string, texts: readonly string[]): void {
    const { state } = this;
    state.pushTable(texts.length, 0);
    texts.forEach((text, index) => {
      state.pushText(text);
      state.setItem(index + 1);
    });
    state.setGlobal(name);
  }

  /** Leaves the answer on the stack. @returns whether it is no refusal */
  private onCall(): boolean {
    const { state } = this;
    const command: string[] = [];
    const { top } = state;
    for (let index = 1; index <= top; index++) {
      const type = state.type(index);
      if (type === TYPES.text) command.push(state.text(index));
      else if (type === TYPES.number) command.push(digitsOf(state.number(index)));
      else {
        this.push(new Refusal('ERR Lua redis lib command arguments must be strings or integers'));
        return false;
      }
    }
    const reply = this.answered(command);
    this.push(reply);
    return !(reply instanceof Refusal);
  }

  private onDecode(): number {
    const text = this.state.text(1);
    // Only bytes beyond ASCII differ from the characters that they stand for.

    const isPlain = /^[\0-\x7f]*$/.test(text) && !text.includes('\\u');
    try {
      const value: unknown = JSON.parse(isPlain ? text : Buffer.from(text, 'latin1').toString());
      this.pushValue(value, isPlain);
    } catch (error) {
      this.fault ??= error;
      this.state.pushNil();
    }
    return 1;
  }

  private answered(command: readonly string[]): Reply {
    if (command.length === 0)
      return new Refusal('ERR Please specify at least one argument for this redis.call()');
    try {
      return this.send(command);
    } catch (error) {
      this.fault ??= error;
      return new Refusal('ERR the model has failed');
    }
  }

  /** Leaves an answer on the stack as scripts get it. */
  private push(reply: Reply): void {
    const { state } = this;
    if (typeof reply === 'string') state.pushText(reply);
    else if (typeof reply === 'number') state.pushNumber(reply);
    else if (reply === null) state.pushBoolean(false);
    else if (Array.isArray(reply)) {
      state.pushTable(reply.length, 0);
      reply.forEach((item: Reply, index) => {
        this.push(item);
        state.setItem(index + 1);
      });
    } else if (reply instanceof Status || reply instanceof Refusal) {
      state.pushTable(0, 1);
      state.pushText(reply instanceof Status ? reply.text : reply.message);
      state.setField(reply instanceof Status ? 'ok' : 'err');
    } else throw new Error('no answer for a script');
  }

  private pushValue(value: unknown, isPlain: boolean): void {
    const { state } = this;
    if (typeof value === 'string') state.pushText(isPlain ? value : Buffer.from(value).toString('latin1'));
    else if (typeof value === 'number') state.pushNumber(value);
    else if (typeof value === 'boolean') state.pushBoolean(value);
    else if (Array.isArray(value)) {
      state.pushTable(value.length, 0);
      value.forEach((item, index) => {
        this.pushValue(item, isPlain);
        state.setItem(index + 1);
      });
    } else if (typeof value === 'object' && value !== null) {
      state.pushTable(0, 0);
      for (const [key, item] of Object.entries(value)) {
        this.pushValue(key, isPlain);
        this.pushValue(item, isPlain);
        state.setEntry();
      }
    } else throw new Error('null in JSON is not modelled');
  }

  /** Takes a script's answer from the stack. */
  private take(): Reply {
    const { state } = this;
    let reply: Reply = null;
    switch (state.type(-1)) {
      case TYPES.text:
        reply = state.text(-1);
        break;
      case TYPES.number:
        reply = Math.trunc(state.number(-1)) + 0;
        break;
      case TYPES.boolean:
        reply = state.boolean(-1) ? 1 : null;
        break;
      case TYPES.table:
        reply = this.table();
    }
    state.drop();
    return reply;
  }

  private table(): Reply {
    const { state } = this;
    const error = this.field('err');
    if (error !== undefined) return new Refusal(error);
    const status = this.field('ok');
    if (status !== undefined) return new Status(status);
    const items: Reply[] = [];
    for (let index = 1; ; index++) {
      state.pushItem(index);
      if (state.type(-1) <= 0) break;
      items.push(this.take());
    }
    state.drop();
    return items;
  }

  private field(name: string): string | undefined {
    const { state } = this;
    state.pushField(name);
    const value = state.type(-1) === TYPES.text ? state.text(-1) : undefined;
    state.drop();
    return value;
  }

  private failure(digest: string): Refusal {
    const { state } = this;
    const message = this.field('err') ?? 'ERR unknown error';
    const source = this.field('source');
    state.pushField('line');
    const line = state.number(-1);
    state.drop();
    return new Refusal(
      source === undefined ? message : `${message} script: ${digest}, on ${source}:${String(line)}.`,
    );
  }
}
