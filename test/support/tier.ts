/** As in jest.config.mjs: CI and `npm run test:all` run everything. */
const everything = process.env.CI !== undefined || process.env.TESTS === 'all';

/** How often something random is tried: before each commit, and where everything runs. */
export const times = (before: number, everywhere: number): number => (everything ? everywhere : before);

/** The first rows of a table of alike cases before each commit, and all of them where everything runs. */
export const first = <T>(count: number, rows: readonly T[]): readonly T[] =>
  everything ? rows : rows.slice(0, count);
