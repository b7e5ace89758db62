import { h, type Tree } from './tree.js';

/** A bar that is `share` of 100 long. Its length is an attribute: a strict policy forbids styles in markup. */
export const bar = (kind: string, share: number): Tree =>
  h(
    'svg',
    { class: `bar ${kind}`, viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    h('rect', { class: 'whole', width: 100, height: 4 }),
    h('rect', { class: 'part', width: Math.round(share * 10) / 10, height: 4 }),
  );

/** How a lease is doing that has `share` of 100 left: healthy ones are renewed after a third of their time. */
export const leaseState = (share: number): 'good' | 'low' | 'ending' =>
  share > 50 ? 'good' : share > 15 ? 'low' : 'ending';
