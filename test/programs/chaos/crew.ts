import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { guard } from '../../support/guard.js';

const PROGRAM = fileURLToPath(new URL('./worker.mjs', import.meta.url));

export interface Member {
  /** The worker's number, and which process of that number it is. */
  readonly name: string;
  readonly child: ChildProcess;
  readonly exited: Promise<unknown>;
  killed: boolean;
}

/** The workers of one round. Who is killed is replaced by another process that writes a journal of its own. */
export class Crew {
  /** Everybody who has ever been there, with the journal. */
  readonly journals = new Map<string, string>();
  private readonly members: Member[] = [];
  private readonly generations: number[] = [];
  private output = '';
  private draining = false;

  constructor(
    private readonly directory: string,
    private readonly planFor: (worker: number) => object,
  ) {}

  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, worker) => this.hire(worker)));
  }

  /** How many have been killed and replaced. */
  get killed(): number {
    return this.journals.size - this.members.length;
  }

  get size(): number {
    return this.members.length;
  }

  member(worker: number): Member {
    return this.members[worker]!;
  }

  send(worker: number, message: { method: string; [argument: string]: unknown }): void {
    const { child } = this.member(worker);
    if (child.connected) child.send(message, () => undefined);
  }

  signal(worker: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.member(worker).child.kill(signal);
  }

  async kill(worker: number): Promise<void> {
    const member = this.member(worker);
    member.killed = true;
    member.child.kill('SIGKILL');
    await member.exited;
  }

  async replace(worker: number): Promise<void> {
    if (this.member(worker).killed && !this.draining) await this.hire(worker);
  }

  /** Lets everybody finish. @returns who has not ended in time, and had to be killed */
  async drain(patience: number): Promise<string[]> {
    this.draining = true;
    this.members.forEach((_, worker) => {
      this.send(worker, { method: 'drain' });
    });
    const late = sleep(patience, 'late', { ref: false });
    const hanging: string[] = [];
    await Promise.all(
      this.members.map(async ({ name, child, exited }) => {
        if ((await Promise.race([exited, late])) !== 'late') return;
        hanging.push(name);
        child.kill('SIGKILL');
        await exited;
      }),
    );
    if (this.output !== '') hanging.push(`output: ${this.output.slice(0, 2_000)}`);
    return hanging;
  }

  private async hire(worker: number): Promise<void> {
    const generation = (this.generations[worker] ?? 0) + 1;
    this.generations[worker] = generation;
    const name = `${String(worker)}.${String(generation)}`;
    const journal = join(this.directory, `${name}.jsonl`);
    const child = fork(PROGRAM, { serialization: 'advanced', execArgv: [], silent: true });
    guard(child);
    const read = (chunk: Buffer) => (this.output += chunk.toString());
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    this.members[worker] = { name, child, exited: once(child, 'exit'), killed: false };
    child.send({ ...this.planFor(worker), journal });
    await Promise.race([once(child, 'message'), once(child, 'exit')]);
    if (child.exitCode !== null) throw new Error(`A worker did not start:\n${this.output}`);
    this.journals.set(name, journal);
    // Whoever comes while everybody leaves, leaves too.
    if (this.draining) this.send(worker, { method: 'drain' });
  }
}
