import type { Crew } from '../crew.js';
import type { Fault } from './fault.js';

const TEN_MINUTES = 600_000;

/** What happens to the processes that take the locks. */
export function workerFaults(crew: Crew): Fault[] {
  const anyone = (strike: Parameters<Fault['strike']>[0]) => {
    const worker = strike.random.between(0, crew.size - 1);
    strike.concern.process = crew.member(worker).name;
    return worker;
  };
  return [
    {
      name: 'worker killed',
      group: 'processes',
      severity: 'outage',
      lasts: [50, 1_000],
      strike: async (strike) => {
        const worker = anyone(strike);
        await crew.kill(worker);
        return () => crew.replace(worker);
      },
    },
    {
      name: 'worker stopped',
      group: 'processes',
      severity: 'outage',
      apart: 'pause',
      lasts: [100, 2_500],
      strike: async (strike) => {
        const worker = anyone(strike);
        const member = crew.member(worker);
        crew.signal(worker, 'SIGSTOP');
        return () => member.child.kill('SIGCONT');
      },
    },
    {
      name: 'event loop blocked',
      group: 'processes',
      severity: 'outage',
      apart: 'pause',
      lasts: [100, 2_200],
      strike: async (strike) => {
        const worker = anyone(strike);
        crew.send(worker, { method: 'block', ms: strike.random.between(100, 2_000) });
        return () => undefined;
      },
    },
    {
      name: 'client clock stepped',
      group: 'client clock',
      severity: 'harmless',
      lasts: [200, 2_000],
      strike: async (strike) => {
        const worker = strike.random.between(0, crew.size - 1);
        crew.send(worker, { method: 'clock', offset: strike.random.pick([-TEN_MINUTES, TEN_MINUTES]) });
        return () => {
          crew.send(worker, { method: 'clock', offset: 0 });
        };
      },
    },
  ];
}
