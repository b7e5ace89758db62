import { clearTimer } from '../runtime/runtime.js';
import type { LockStore } from '../store/lock-store.js';
import type { HealthDepth, StoreHealth, StoreWarning } from '../store/store-health.js';
import { idleTimerAt, now } from './holding/deadline.js';
import { asError, promiseOf } from '../runtime/thrown.js';

/** ms. Longer than a store needs to give up on its nodes by itself. */
const ANSWER_TIME = 5_000;

/**
 * Asks the store for its health, and reports each warning once. It asks at boot, in the background, so that a slow
 * store neither delays nor fails the boot; after each reconnection, which may lead to another server; and at each
 * health request.
 */
export class Preflight {
  private readonly told = new Set<string>();
  private looking = false;
  private again = false;

  constructor(
    private readonly store: LockStore,
    private readonly onWarning: (warning: StoreWarning) => void,
    /** The codes of the warnings that are left out. */
    private readonly silenced: readonly string[] = [],
  ) {}

  /** Asks in the background. Nodes that connect meanwhile cause one further question. */
  look(): void {
    this.again = this.looking;
    if (this.looking) return;
    this.looking = true;
    void this.report('look').then(() => {
      this.looking = false;
      if (this.again) this.look();
    });
  }

  /** Never rejects, and takes at most 5 s. */
  async report(depth: HealthDepth = 'try'): Promise<StoreHealth> {
    const health = await this.ask(depth);
    const warnings = health.warnings.filter(({ code }) => !this.silenced.includes(code));
    for (const warning of warnings) {
      const key = `${warning.code} ${warning.node}`;
      if (this.told.has(key)) continue;
      this.told.add(key);
      this.onWarning(warning);
    }
    return { ...health, warnings };
  }

  private ask(depth: HealthDepth): Promise<StoreHealth> {
    return new Promise((resolve) => {
      const timer = idleTimerAt(now() + ANSWER_TIME, () => {
        resolve(down(`it has not answered for ${String(ANSWER_TIME)} ms`));
      });
      const answered = (health: StoreHealth) => {
        clearTimer(timer);
        resolve(health);
      };
      promiseOf(() => this.store.health(depth))
        .then((health: unknown) => {
          answered(isHealth(health) ? health : down('its answer is no health: it lacks nodes or warnings'));
        })
        .catch((error: unknown) => {
          answered(down(asError(error).message));
        });
    });
  }
}

/** The application may have written its store in JavaScript. */
const isHealth = (answer: unknown): answer is StoreHealth => {
  const { nodes, warnings } = (answer ?? {}) as Partial<StoreHealth>;
  return Array.isArray(nodes) && Array.isArray(warnings);
};

const down = (error: string): StoreHealth => ({
  status: 'down',
  nodes: [{ node: 'store', status: 'down', latency: undefined, error }],
  warnings: [],
});
