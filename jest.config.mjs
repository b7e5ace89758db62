const common = {
  testEnvironment: '<rootDir>/test/support/environment.mjs',
  extensionsToTreatAsEsm: ['.ts'],
  transform: {
    '^.+\\.ts$': '<rootDir>/test/support/transform.mjs',
    '/node_modules/@nestjs/(common|core|testing)/.+\\.js$': '<rootDir>/test/support/transform.mjs',
  },
  // Nest 11 is CommonJS, and is loaded as it is.
  transformIgnorePatterns: ['/node_modules/(?!@nestjs/(common|core|testing)/)', '/test/nest-11/'],
  setupFiles: ['<rootDir>/test/quiet-logs.ts'],
};

// CI runs everything, and so does `npm run test:all`. Other runs leave out Nest 11, Redisson, and what is in a folder `slow/`.
const everything = process.env.CI !== undefined || process.env.TESTS === 'all';
// On two cores the files that compute for minutes would take the time from servers and leases of the others, so CI runs them
// apart: TESTS=computing gives way to TESTS=waiting beside it.
const COMPUTING =
  '/test/(models/|programs/simulation/|testing/slow/planted|project/slow/|docs/slow/|board/slow/)';
const isComputing = process.env.TESTS === 'computing';
const isWaiting = process.env.TESTS === 'waiting';
const sourceNames = {
  '^(\\.{1,2}/.*)\\.js$': '$1',
  '^(ioredis|rxjs|rxjs/operators)$': '<rootDir>/node_modules/.cache/bundled/$1.cjs',
};

/** @type {import('jest').Config} */
export default {
  // More files at a time than cores, because most of them wait most of the time: for leases, servers and processes. This many
  // keep two cores at 75 to 85 %. More than this and a slow machine misses the deadlines of their servers.
  maxWorkers: process.env.CI === undefined ? 8 : 5,
  // Jest keeps what a test file of ES modules has loaded, some 10 MB each, and the garbage collector has ever more to do.
  workerIdleMemoryLimit: '500MB',
  // Only ends what hangs: a machine may have any speed.
  testTimeout: 240_000,
  globalSetup: '<rootDir>/test/support/before-all.mjs',
  testSequencer: '<rootDir>/test/support/longest-first.mjs',
  reporters: ['default', '<rootDir>/test/support/repeat.mjs'],
  projects: [
    {
      ...common,
      displayName: 'nest-12',
      roots: ['<rootDir>/test', '<rootDir>/sample-app'],
      ...(isComputing ? { testRegex: `${COMPUTING}.*\\.spec\\.ts$` } : { testMatch: ['**/*.spec.ts'] }),
      testPathIgnorePatterns: [
        '<rootDir>/test/(package|jvm)/',
        ...(everything ? [] : ['/slow/']),
        ...(isWaiting ? [COMPUTING] : []),
      ],
      moduleNameMapper: {
        ...sourceNames,
        '^(nestjs-cls|@nestjs-cls/.*|@willsoto/nestjs-prometheus)$':
          '<rootDir>/node_modules/.cache/es-modules/$1.mjs',
      },
    },
    ...(everything && !isComputing
      ? [
          {
            ...common,
            displayName: 'nest-11',
            roots: ['<rootDir>/test/nest'],
            testMatch: ['**/*.spec.ts'],
            // Nothing in the first is Nest's, and the quick tests of the board are run with what it needs of Nest.
            testPathIgnorePatterns: ['<rootDir>/test/nest/key-template', '<rootDir>/test/nest/board/slow/'],
            moduleNameMapper: {
              ...sourceNames,
              '^@nestjs/([^/]+)(.*)$': '<rootDir>/test/nest-11/node_modules/@nestjs/$1$2',
            },
          },
          {
            ...common,
            displayName: 'jvm',
            roots: ['<rootDir>/test/jvm'],
            testMatch: ['**/*.spec.ts'],
            moduleNameMapper: sourceNames,
            // Runs only where one of these is to be run.
            globalSetup: '<rootDir>/test/jvm/build.mjs',
          },
        ]
      : []),
  ],
};
