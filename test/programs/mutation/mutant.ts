/** One change of one file that a test should notice. */
export interface Mutant {
  file: string;
  line: number;
  /** What stands between `start` and `end`. */
  before: string;
  after: string;
  start: number;
  end: number;
}

export const applied = (source: string, { start, end, after }: Mutant): string =>
  source.slice(0, start) + after + source.slice(end);
