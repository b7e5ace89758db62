import { format } from 'node:util';
import { jest } from '@jest/globals';
import { Logger, type LoggerService } from '@nestjs/common';

/** Collects what Nest's loggers and the console would print, instead of printing it. */
export class LogLines {
  readonly lines: string[] = [];
  readonly logger: LoggerService;
  private readonly console: { mockRestore(): void }[];

  constructor() {
    const add = (...parts: unknown[]) => void this.lines.push(format(...parts));
    this.logger = { log: add, error: add, warn: add, debug: add, verbose: add, fatal: add };
    Logger.overrideLogger(this.logger);
    this.console = (['log', 'info', 'warn', 'error', 'debug'] as const).map((method) =>
      jest.spyOn(console, method).mockImplementation(add),
    );
  }

  stop(): void {
    Logger.overrideLogger(false);
    for (const method of this.console) method.mockRestore();
  }
}
