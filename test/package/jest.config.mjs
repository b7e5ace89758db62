import config from '../../jest.config.mjs';

// What users install: slow, because it asks a registry, and so not among the other tests.
const [project] = config.projects;
export default {
  ...project,
  displayName: 'package',
  rootDir: '../..',
  roots: ['<rootDir>/test/package'],
  testMatch: ['<rootDir>/test/package/*.spec.ts'],
  testPathIgnorePatterns: [],
  testTimeout: 600_000,
  globalSetup: config.globalSetup,
};
