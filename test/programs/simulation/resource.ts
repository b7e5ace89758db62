import type { Update } from '../chaos/resource.js';

/** What the locks protect, as the resource of the chaos runs: a counter per lock that checks fencing tokens. */
export class SimulatedResource {
  readonly updates: Update[] = [];
  refused = 0;
  private readonly states = new Map<string, { token: number; value: number }>();

  /** @returns the counter; -1 for a token that is too old */
  read(lock: string, token: number): number {
    const state = this.of(lock);
    if (token < state.token) return -1;
    state.token = token;
    return state.value;
  }

  write(lock: string, token: number, to: number, from: number): void {
    const state = this.of(lock);
    if (token < state.token) {
      this.refused++;
      return;
    }
    state.token = token;
    state.value = to;
    this.updates.push({ lock, token, from, to });
  }

  private of(lock: string) {
    const state = this.states.get(lock) ?? { token: 0, value: 0 };
    this.states.set(lock, state);
    return state;
  }
}
