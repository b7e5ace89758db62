import type { TcpProxy } from '../../support/tcp-proxy.js';
import type { Fault, Strike } from './fault.js';

/** What happens between processes and server. Each process has a stretch of network of its own. */
export function networkFaults(proxies: readonly TcpProxy[]): Fault[] {
  const fault = (
    name: string,
    severity: Fault['severity'],
    lasts: Fault['lasts'],
    start: (proxy: TcpProxy, strike: Strike) => unknown,
    end: (proxy: TcpProxy) => unknown = () => undefined,
  ): Fault => ({
    name,
    severity,
    lasts,
    strike: async (strike) => {
      const struck = strike.random.some(proxies);
      for (const proxy of struck) start(proxy, strike);
      return () => {
        for (const proxy of struck) end(proxy);
      };
    },
  });
  return [
    {
      name: 'network slow',
      severity: 'harmless',
      lasts: [1_000, 3_000],
      strike: async () => {
        for (const proxy of proxies) proxy.replyDelay(15);
        return () => {
          for (const proxy of proxies) proxy.replyDelay(0);
        };
      },
    },
    fault(
      'replies delayed',
      'outage',
      [300, 2_500],
      (proxy, { random }) => {
        proxy.replyDelay(random.pick([20, 100, 400, 1_800]));
      },
      (proxy) => {
        proxy.replyDelay(0);
      },
    ),
    fault(
      'requests delayed',
      'outage',
      [300, 2_000],
      (proxy, { random }) => {
        proxy.requestDelay(random.pick([20, 100, 400, 1_800]));
      },
      (proxy) => {
        proxy.requestDelay(0);
      },
    ),
    fault('connections cut', 'outage', [0, 100], (proxy) => {
      proxy.cut();
    }),
    fault('cut inside of a reply', 'outage', [100, 500], (proxy, { random }) => {
      proxy.cutAfterReplyBytes(random.between(0, 120));
    }),
    fault(
      'replies lost after the command was carried out',
      'outage',
      [100, 2_000],
      (proxy) => {
        proxy.dropReplies(true);
      },
      (proxy) => {
        proxy.dropReplies(false);
      },
    ),
    fault(
      'requests lost',
      'outage',
      [100, 2_000],
      (proxy) => {
        proxy.dropRequests(true);
      },
      (proxy) => {
        proxy.dropRequests(false);
      },
    ),
    fault(
      'connections refused',
      'outage',
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
        `messages ${what}`,
        what === 'duplicated' ? 'harmless' : 'outage',
        [300, 2_000],
        (proxy) => {
          proxy.messages(what);
        },
        (proxy) => {
          proxy.messages('delivered');
        },
      ),
    ),
  ];
}
