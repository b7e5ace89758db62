import { EventEmitter } from 'node:events';
import type { Cluster } from 'ioredis';
import { answered } from './replies.js';
import { ScriptedClient } from './scripted-client.js';

/** A node that answers by a function: what several real nodes answer at one moment, while slots move, takes seconds. */
export class ScriptedNode extends ScriptedClient {
  readonly name: string;

  constructor(port: number) {
    super(() => 1, { host: 'host', port });
    this.name = `host:${String(port)}`;
  }
}

/** A client of ioredis for a cluster: a test says which of its nodes has which slot. */
export class ScriptedCluster extends EventEmitter {
  status = 'ready';
  slots: string[][] = [];
  readonly options: Record<string, unknown> = {};
  looks = 0;
  info: unknown = 'cluster_state:ok';
  readonly learned: string[] = [];
  /** Is called when the client is asked to find out where a key is. */
  learn: () => unknown = () => 0;
  readonly ended: string[] = [];
  /** Answers QUIT. */
  bye: () => unknown = () => 'OK';

  constructor(readonly all: ScriptedNode[]) {
    super();
  }

  get ioredis(): Cluster {
    return this as unknown as Cluster;
  }

  nodes(): ScriptedNode[] {
    return this.all;
  }

  refreshSlotsCache(done?: () => void): void {
    this.looks++;
    done?.();
  }

  /** Only EVAL is sent through the client itself. */
  createBuiltinCommand() {
    const string = (_: string, __: number, key: string): Promise<unknown> => {
      this.learned.push(key);
      return answered(this.learn);
    };
    return { string };
  }

  cluster(): Promise<unknown> {
    return answered(() => this.info);
  }

  connect(): Promise<void> {
    this.status = 'ready';
    this.emit('ready');
    return Promise.resolve();
  }

  quit(): Promise<unknown> {
    this.ended.push('quit');
    return answered(this.bye);
  }

  disconnect(): void {
    this.ended.push('disconnect');
  }
}
