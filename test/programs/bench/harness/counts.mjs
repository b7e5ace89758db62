import { sum } from '../report/statistics.mjs';

/** What the harness itself sends while it measures. */
const OWN = new Set(['info', 'config|resetstat']);

/**
 * What servers did since the last reset: commands that clients sent, those that scripts ran, CPU time and traffic.
 * INFO counts both kinds of commands as one, so the wire tells them apart.
 */
export class Counts {
  constructor(servers) {
    this.servers = servers;
  }

  async reset() {
    await Promise.all(this.servers.map(({ control }) => control.config('RESETSTAT')));
    this.cpuBefore = await this.sum((info) => cpu(info));
  }

  /** @param wire tells what the contender sends from what its scripts run */
  async read(wire) {
    const infos = await Promise.all(this.servers.map(({ control }) => control.info('all')));
    const calls = {};
    for (const info of infos) {
      for (const [, name, count] of info.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)) {
        if (!OWN.has(name)) calls[name] = (calls[name] ?? 0) + Number(count);
      }
    }
    return {
      calls,
      commands: commandsIn(calls, wire),
      serverCpu: infos.reduce((total, info) => total + cpu(info), 0) - this.cpuBefore,
      received: infos.reduce((total, info) => total + field(info, 'total_net_input_bytes'), 0),
      sent: infos.reduce((total, info) => total + field(info, 'total_net_output_bytes'), 0),
    };
  }

  /** Bytes */
  async memory() {
    return await this.sum((info) => field(info, 'used_memory'));
  }

  async sum(of) {
    const infos = await Promise.all(this.servers.map(({ control }) => control.info('all')));
    return infos.reduce((total, info) => total + of(info), 0);
  }
}

/** The share of calls that may be of commands which the warm-up has not shown. */
const UNSEEN = 0.01;

/** Those that clients sent. The few that the warm-up has not shown count as sent: that flatters nobody. */
function commandsIn(calls, wire) {
  const counts = Object.entries(calls).map(([name, count]) => {
    return { name, count, share: wire.shareSent(name.split('|')[0]) };
  });
  const unseen = counts.filter(({ share }) => share === undefined);
  if (sum(unseen.map(({ count }) => count)) > sum(Object.values(calls)) * UNSEEN) {
    const names = unseen.map(({ name }) => name).join(', ');
    throw new Error(
      `Not seen in the warm-up, so that nobody knows whether clients or scripts run them: ${names}`,
    );
  }
  return sum(counts.map(({ count, share = 1 }) => count * share));
}

export const field = (info, name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? NaN);

/** ms */
const cpu = (info) => (field(info, 'used_cpu_user') + field(info, 'used_cpu_sys')) * 1000;
