import type { Actor } from './actor.js';

/** In which order what is due together is run, as Node does it after a pause: timers, what has arrived, what comes after input. */
export const PHASE = { timer: 0, input: 1, afterInput: 2 } as const;

export interface Event {
  /** ms of true time. Later than `due` where the actor could not run before. */
  at: number;
  readonly phase: number;
  readonly due: number;
  readonly number: number;
  /** Runs only while this actor is the same and alive. Undefined for what is nobody's, such as a fault. */
  readonly actor: Actor | undefined;
  cancelled: boolean;
  run: () => void;
}

const isBefore = (a: Event, b: Event): boolean =>
  a.at !== b.at
    ? a.at < b.at
    : a.phase !== b.phase
      ? a.phase < b.phase
      : a.due !== b.due
        ? a.due < b.due
        : a.number < b.number;

/** A binary heap of events. */
export class EventQueue {
  private readonly heap: Event[] = [];

  get length(): number {
    return this.heap.length;
  }

  push(event: Event): void {
    const { heap } = this;
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = event;
  }

  pop(): Event | undefined {
    const { heap } = this;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first;
  }
}
