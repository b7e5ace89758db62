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
      commands: Object.entries(calls).reduce(
        (total, [name, count]) => total + count * wire.shareSent(name.split('|')[0]),
        0,
      ),
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

export const field = (info, name) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1] ?? NaN);

/** ms */
const cpu = (info) => (field(info, 'used_cpu_user') + field(info, 'used_cpu_sys')) * 1000;
