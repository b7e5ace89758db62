import { deadlockPanel, electionPanel, healthPanel, isUnseen, problemText } from '../view/panels.js';
import { summaryOf } from '../view/summary.js';
import { serverTime } from './clock.js';
import { byId, Slot } from './elements.js';
import type { Model } from './model.js';

const contentOf = (id: string): Element => byId(id).querySelector('.content') ?? byId(id);

/** The panels around the table. */
export class Panels {
  private readonly summary = new Slot(byId('summary'));
  private readonly problem = new Slot(byId('problem'));
  private readonly health = new Slot(contentOf('health'));
  private readonly elections = new Slot(contentOf('elections'));
  private readonly deadlocks = new Slot(contentOf('deadlocks'));

  constructor(private readonly model: Model) {}

  render(): void {
    const { rest } = this.model;
    if (rest === undefined) return;
    const { problem, health, own, elections, deadlocks } = rest;
    this.problem.show(problem === null ? [] : problemText(problem));
    byId('problem').hidden = problem === null;
    document.documentElement.classList.toggle('is-down', problem?.kind === 'failed');
    this.health.show(healthPanel(health, own));
    this.elections.show(electionPanel(elections));
    byId('elections').hidden = elections.length === 0;
    this.deadlocks.show(deadlockPanel(deadlocks));
    byId('deadlocks').hidden = deadlocks.length === 0;
    this.tick();
  }

  tick(): void {
    const { rest, locks } = this.model;
    if (rest === undefined) return;
    const { more, problem } = rest;
    this.summary.show(summaryOf(locks.values(), { at: serverTime(), more, isUnseen: isUnseen(problem) }));
  }
}
