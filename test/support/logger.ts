import { afterAll, beforeEach, jest } from '@jest/globals';
import { Logger } from '@nestjs/common';

/** Hears what Nest would log, anew for each test of the group. */
export function loggerOfEach() {
  const logger = { log: jest.fn(), warn: jest.fn(), error: jest.fn() };
  beforeEach(() => {
    for (const level of Object.values(logger)) level.mockReset();
    Logger.overrideLogger(logger);
  });
  afterAll(() => {
    Logger.overrideLogger(false);
  });
  const lines = (level: keyof typeof logger) => logger[level].mock.calls.map(([line]) => String(line));
  return { ...logger, lines };
}
