import { readFileSync } from 'node:fs';
import { parse } from 'yaml';

/** One line of the text that Prometheus scrapes: its name, and the names of its labels. */
export interface Series {
  readonly name: string;
  readonly labels: readonly string[];
}

const SERIES = /^([a-z_:][\w:]*)(?:\{(.*)\})? /i;
const LABEL = /(\w+)="(?:[^"\\]|\\.)*"/g;

export const seriesOf = (text: string): Series[] =>
  text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = line, labels = ''] = SERIES.exec(line) ?? [];
      return { name, labels: [...labels.matchAll(LABEL)].map(([, label = '']) => label) };
    });

/** What a query of PromQL names: metrics as patterns, and labels. */
export interface Named {
  readonly metrics: readonly RegExp[];
  readonly labels: readonly string[];
}

const KEYWORDS = ['by', 'without', 'or', 'and', 'unless', 'offset', 'on', 'ignoring'];

export function namedBy(query: string): Named {
  const labels: string[] = [];
  const metrics: RegExp[] = [];
  const rest = query
    .replace(/\b(?:by|without|on|ignoring) \(([^)]*)\)/g, (_, list: string) => {
      labels.push(...list.split(',').map((label) => label.trim()));
      return '';
    })
    .replace(/\{([^}]*)\}/g, (_, matchers: string) => {
      for (const [, label = '', pattern = ''] of matchers.matchAll(/(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"/g)) {
        if (label === '__name__') metrics.push(new RegExp(`^(?:${pattern})$`));
        else labels.push(label);
      }
      return '';
    })
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\boffset [\w$]+/g, '');
  for (const [name] of rest.matchAll(/\b[a-z_]\w*\b(?! *\()/g)) {
    if (!KEYWORDS.includes(name)) metrics.push(new RegExp(`^${name}$`));
  }
  return { metrics, labels };
}

const read = (path: string) =>
  readFileSync(new URL(`../../../docs/observability/${path}`, import.meta.url), 'utf8');

interface Dashboard {
  readonly panels: readonly {
    readonly title: string;
    readonly targets: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
}

/** The queries of the dashboard, with their titles. */
export function dashboardQueries(): [title: string, query: string][] {
  const { panels } = JSON.parse(read('grafana.json')) as Dashboard;
  return panels.flatMap(({ title, targets }) => targets.map(({ expr }): [string, string] => [title, expr]));
}

/** The metric and the label that the dashboard lets choose from. */
export function dashboardVariables(): string[] {
  const { templating } = JSON.parse(read('grafana.json')) as Dashboard;
  return templating.list.flatMap(({ definition }) => definition ?? []);
}

export function alertQueries(): [title: string, query: string][] {
  const { groups } = parse(read('alerts.yml')) as {
    groups: { rules: { alert: string; expr: string }[] }[];
  };
  return groups.flatMap(({ rules }) => rules.map(({ alert, expr }): [string, string] => [alert, expr]));
}
