import { setTimeout as sleep } from 'node:timers/promises';
import type { TcpProxy } from '../../../support/tcp-proxy.js';
import type { Fault, Strike } from './fault.js';

/** What happens between processes and servers. Of each process, all the ways to the servers are struck together. */
export function networkFaults(ways: readonly (readonly TcpProxy[])[]): Fault[] {
  const fault = (
    group: Fault['group'],
    name: string,
    lasts: Fault['lasts'],
    start: (proxy: TcpProxy, strike: Strike) => unknown,
    end: (proxy: TcpProxy) => unknown = () => undefined,
    severity: Fault['severity'] = 'outage',
  ): Fault => ({
    name,
    group,
    severity,
    lasts,
    strike: async (strike) => {
      const struck = strike.random.some(ways).flat();
      for (const proxy of struck) start(proxy, strike);
      return () => {
        for (const proxy of struck) end(proxy);
      };
    },
  });
  // It is over when the last piece has arrived: a command may come after its connection, and its process, has gone.
  const delayed = (name: string, lasts: Fault['lasts'], way: 'requestDelay' | 'replyDelay'): Fault => ({
    name,
    group: 'network',
    severity: 'outage',
    lasts,
    strike: async ({ random }) => {
      const delays = random.some(ways).flatMap((proxies) => {
        const ms = random.pick([20, 100, 400, 1_800]);
        for (const proxy of proxies) proxy[way](ms);
        return proxies.map((proxy) => ({ proxy, ms }));
      });
      return async () => {
        for (const { proxy } of delays) proxy[way](0);
        await sleep(Math.max(0, ...delays.map(({ ms }) => ms)));
      };
    },
  });
  return [
    {
      name: 'network slow',
      group: 'network',
      severity: 'harmless',
      lasts: [1_000, 3_000],
      strike: async () => {
        for (const proxy of ways.flat()) proxy.replyDelay(15);
        return () => {
          for (const proxy of ways.flat()) proxy.replyDelay(0);
        };
      },
    },
    delayed('replies delayed', [300, 2_500], 'replyDelay'),
    delayed('requests delayed', [300, 2_000], 'requestDelay'),
    fault('network', 'connections cut', [0, 100], (proxy) => {
      proxy.cut();
    }),
    fault('network', 'cut inside of a reply', [100, 500], (proxy, { random }) => {
      proxy.cutAfterReplyBytes(random.between(0, 120));
    }),
    fault(
      'network',
      'replies lost after the command was carried out',
      [100, 2_000],
      (proxy) => {
        proxy.dropReplies(true);
      },
      (proxy) => {
        proxy.dropReplies(false);
      },
    ),
    fault(
      'network',
      'requests lost',
      [100, 2_000],
      (proxy) => {
        proxy.dropRequests(true);
      },
      (proxy) => {
        proxy.dropRequests(false);
      },
    ),
    fault(
      'network',
      'connections refused',
      [100, 2_000],
      (proxy) => {
        proxy.refuse(true);
        proxy.cut();
      },
      (proxy) => {
        proxy.refuse(false);
      },
    ),
    ...(['dropped', 'duplicated', 'reordered'] as const).map((what) =>
      fault(
        'messages',
        `messages ${what}`,
        [300, 2_000],
        (proxy) => {
          proxy.messages(what);
        },
        (proxy) => {
          proxy.messages('delivered');
        },
        what === 'duplicated' ? 'harmless' : 'outage',
      ),
    ),
  ];
}
