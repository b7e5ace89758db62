/** As in jest.config.mjs: CI and `npm run test:all` run everything. */
const everything = process.env.CI !== undefined || process.env.TESTS === 'all';

/** How often something random is tried: before each commit, and where everything runs. */
export const times = (before: number, everywhere: number): number => (everything ? everywhere : before);
