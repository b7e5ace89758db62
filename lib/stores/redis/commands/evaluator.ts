import type { Session } from '../connection/session.js';
import { withCommand } from '../connection/command-refused.js';
import type { Argument } from './command.js';
import { directCommand } from './direct-command.js';
import { type Call, Lane, MOST_KEYS } from './lane.js';
import {
  CommandTimeout,
  isOfReplica,
  isWithheld,
  lacksEvalsha,
  replyCode,
  TakenBack,
  UnexpectedReply,
} from '../connection/redis-errors.js';
import { isReply } from '../connection/reply-texts.js';
import * as scripts from './script.js';
import { Underway } from '../../../runtime/underway.js';
import { monotonicTime, setTimer } from '../../../runtime/runtime.js';
import { asError, promiseOf } from '../../../runtime/thrown.js';

/** The connections over which the commands go. */
type Way = Pick<
  Session,
  | 'client'
  | 'commandTimeout'
  | 'usable'
  | 'generation'
  | 'outage'
  | 'asked'
  | 'answered'
  | 'lost'
  | 'refusedAsReplica'
  | 'carriedOut'
>;

/** The scripts that a replica carries out, too. */
const READING: ReadonlySet<scripts.Script> = new Set([
  scripts.inspect,
  scripts.note,
  scripts.recall,
  scripts.scan,
  scripts.subscribers,
]);

/** One command. */
interface Command {
  /** They become fewer if some are taken back before the command is sent again. */
  calls: readonly Call[];
  /** The generation of the connection over which the command was sent. */
  readonly generation: number;
  /** ms for the answer, and their end on the monotonic clock. */
  readonly time: number;
  readonly end: number;
  /** It has its answer, or its time has ended. */
  isOver: boolean;
}

/**
 * Carries out scripts over one client, in the order in which they are asked for. A call that comes alone is sent at once.
 * Several calls of one turn of the event loop are sent as one command.
 */
export class Evaluator {
  /** The server takes only whole scripts: EVALSHA is forbidden or renamed away, EVAL is not. */
  private isDigestless = false;
  /** lane.lua has been sent over this connection. */
  private knowsLane = false;
  /** The user may not send whole scripts, and the server does not know lane.lua. */
  private lacksLane = false;
  private readonly underway = new Underway<Command>(monotonicTime, timerAt, (late) => {
    this.session.answered();
    this.failed(late, new CommandTimeout(late.time));
  });
  private readonly lane: Lane;
  private readonly commands: Readonly<Record<'evalsha' | 'eval', ReturnType<typeof directCommand>>>;

  constructor(private readonly session: Way) {
    const { client } = session;
    this.commands = { evalsha: directCommand(client, 'evalsha'), eval: directCommand(client, 'eval') };
    this.lane = new Lane((groups) => {
      this.sendGroups(groups);
    });
  }

  /** @param isAlone the call is not sent together with others */
  run(call: Call, isAlone: boolean): void {
    const { script, keys } = call;
    const isShort = script.inLane !== undefined && keys.length <= MOST_KEYS;
    const mayShare = !isAlone && isShort && !this.isDigestless && !this.lacksLane;
    // A call that comes first, or alone, has nothing to wait for.
    if (mayShare && !(this.underway.isEmpty && this.lane.isEmpty)) {
      this.lane.add(call);
    } else {
      this.lane.flush();
      this.send([call]);
    }
  }

  /** The scripts of the next server are unknown. */
  disconnected(): void {
    this.isDigestless = false;
    this.knowsLane = false;
    this.lacksLane = false;
  }

  /** To be called before a command is sent past this evaluator. */
  flush(): void {
    this.lane.flush();
  }

  private sendGroups(groups: readonly (readonly Call[])[]): void {
    const { session } = this;
    const { stream } = session.client;
    // A write to the socket costs as much as a command. A client that has lost its connection may have no socket.
    const isOneWrite = groups.length > 1 && session.usable;
    if (isOneWrite) stream.cork();
    for (const calls of groups) this.send(calls);
    if (isOneWrite) stream.uncork();
  }

  /** Answers each of the calls. Has no promise of its own, because every command comes this way. */
  private send(wanted: readonly Call[]): void {
    const { session } = this;
    const { generation } = session;
    const calls = this.wanted(wanted, takenBack);
    if (calls.length === 0) return;
    let until = Infinity;
    for (const call of calls) until = Math.min(until, call.until);
    const sentAt = monotonicTime();
    const time = Math.max(1, Math.min(session.commandTimeout, until - sentAt));
    const command: Command = { calls, generation, time, end: sentAt + time, isOver: false };
    if (!session.usable) {
      this.failed(command, session.outage());
      return;
    }
    // The command is sent first, so that nothing delays what waits for its reply.
    session.asked();
    const sent = promiseOf(() => this.evaluate(command, this.isDigestless || this.isFirstInLane(command)));
    this.underway.add(command, sentAt);
    const replied = (reply: unknown) => {
      if (this.over(command)) this.answer(command, reply);
    };
    const refused = (error: unknown) => {
      if (this.over(command)) this.failed(command, asError(error));
    };
    sent.then(replied, (error: unknown) => {
      const again = this.again(command, error);
      if (again === undefined) refused(error);
      else again.then(replied, refused);
    });
  }

  /** @returns false if the command was over before, because its time had ended */
  private over(command: Command): boolean {
    if (!this.underway.over(command)) return false;
    this.session.answered();
    return true;
  }

  private failed({ calls, generation, end }: Command, error: unknown): void {
    const isAlone = calls.length === 1;
    if (isOfReplica(error)) this.session.refusedAsReplica(error);
    // The server may not have learned lane.lua.
    if (!isAlone) this.knowsLane = false;
    const lacksLane = !isAlone && isWithheld(error);
    this.lacksLane ||= lacksLane;
    for (const call of calls) {
      // The server may know the script of each call.
      if (lacksLane) this.send([{ ...call, until: end }]);
      else this.fail(call, withCommand(error, call.script), generation);
    }
  }

  /**
   * Sends a command anew whose script the server does not know, unless its time has ended: a release may have followed, and
   * nothing may come after a release.
   * @returns undefined if the error is the answer
   */
  private again(command: Command, error: unknown): Promise<unknown> | undefined {
    const lacking = lacksEvalsha(error);
    if (command.isOver || !(lacking || replyCode(error) === 'NOSCRIPT')) return undefined;
    // A command that was sent twice, over two connections, may have been carried out the first time.
    command.calls = this.wanted(command.calls, () =>
      command.generation === this.session.generation ? takenBack() : error,
    );
    if (command.calls.length === 0) return Promise.resolve([]);
    // The client may have been switched to another database meanwhile.
    if (!this.session.usable) return Promise.reject(this.session.outage());
    return promiseOf(() => this.evaluate(command, true)).then((reply) => {
      if (lacking) this.isDigestless = true;
      return reply;
    });
  }

  /**
   * The first command of lane.lua over a connection is sent whole. A server that does not know the script would get it again
   * after later commands, such as an acquisition for which this command releases the lock.
   */
  private isFirstInLane({ calls }: Command): boolean {
    if (calls.length === 1 || this.knowsLane) return false;
    this.knowsLane = true;
    return true;
  }

  private evaluate({ calls }: Command, whole: boolean): Promise<unknown> {
    const [only] = calls;
    const { script, keys, args } = only !== undefined && calls.length === 1 ? only : together(calls);
    const send = only?.asking === true ? this.ask : this.evaluateNow;
    return whole ? send('eval', script.source, keys, args) : send('evalsha', script.sha, keys, args);
  }

  private answer({ calls, generation, end }: Command, reply: unknown): void {
    const [only] = calls;
    if (only !== undefined && calls.length === 1) {
      this.settle(only, reply, generation);
      return;
    }
    const replies = Array.isArray(reply) && reply.length === calls.length ? (reply as unknown[]) : undefined;
    if (replies === undefined) this.knowsLane = false;
    calls.forEach((call, index) => {
      const own = replies === undefined ? new UnexpectedReply(reply) : replies[index];
      if (!(own instanceof Error)) {
        this.settle(call, own, generation);
      } else if (isReply(own) && isWithheld(own)) {
        // The refused command is known only for a script that is sent by itself.
        this.send([{ ...call, until: end }]);
      } else {
        if (isOfReplica(own)) this.session.refusedAsReplica(own);
        this.fail(call, own, generation);
      }
    });
  }

  private settle(call: Call, reply: unknown, generation: number): void {
    const isPresent = generation === this.session.generation;
    if (isPresent && !READING.has(call.script)) this.session.carriedOut();
    if (call.acquisition === undefined || isPresent) call.resolve(reply);
    else call.reject(this.session.lost(generation));
  }

  /** A client that resends commands in flight gets the refusal of the second copy. The first may have been carried out. */
  private fail(call: Call, error: unknown, generation: number): void {
    if (call.acquisition === undefined || generation === this.session.generation) call.reject(error);
    else call.reject(this.session.lost(generation, error));
  }

  /** The calls that have not been taken back. The others are rejected with `reason`. */
  private wanted(calls: readonly Call[], reason: () => unknown): readonly Call[] {
    const isUnwanted = ({ acquisition }: Call) => acquisition?.unwanted === true;
    if (!calls.some(isUnwanted)) return calls;
    for (const call of calls) if (isUnwanted(call)) call.reject(reason());
    return calls.filter((call) => !isUnwanted(call));
  }

  private readonly evaluateNow = (
    command: 'evalsha' | 'eval',
    text: string,
    keys: readonly string[],
    args: readonly Argument[],
  ): Promise<unknown> => this.commands[command](text, keys.length, ...keys, ...args);

  /** ASKING is valid for the very next command only, so both leave in one piece. */
  private readonly ask: typeof this.evaluateNow = async (command, text, keys, args) => {
    const replies = await this.session.client
      .pipeline()
      .asking()
      [command](text, keys.length, ...keys, ...args)
      .exec();
    const [error, reply] = replies?.[1] ?? [];
    if (error != null) throw error;
    return reply;
  };
}

const timerAt = (moment: number, callback: () => void) => setTimer(callback, moment - monotonicTime());

const takenBack = () => new TakenBack();

/** Several calls as one call of lane.lua. A loop takes a third less time than flatMap, and a busy process asks for all in this way. */
function together(calls: readonly Call[]): Pick<Call, 'script' | 'keys' | 'args'> {
  const keys: string[] = [];
  const items: unknown[] = [];
  for (const { script, keys: own, args } of calls) {
    keys.push(...own);
    // The scripts expect every argument as a text, as a command has them.
    items.push([script.inLane, own.length, args.map(String)]);
  }
  return { script: scripts.lane, keys, args: [JSON.stringify(items)] };
}
