import { timeOf } from '../api/duration.js';
import { isLockConfigError } from '../api/error-guards.js';
import { usageFailure } from './command-failure.js';

/** What stands on the command line behind the command. */
export class Given {
  constructor(
    readonly names: readonly string[],
    private readonly options: ReadonlyMap<string, string>,
    /** The program behind `--` and its arguments. */
    readonly program: readonly string[],
    readonly environment: Readonly<Record<string, string | undefined>>,
  ) {}

  flag(option: string): boolean {
    return this.options.has(option);
  }

  value(option: string): string | undefined {
    return this.options.get(option);
  }

  /** A time such as `500ms`, `10s` or `5m`, in ms. */
  time(option: string, fallback: number, least: number): number {
    const value = this.options.get(option);
    if (value === undefined) return fallback;
    try {
      return timeOf(`--${option}`, /^-?\d+$/.test(value) ? Number(value) : value, { least });
    } catch (error) {
      // The value is left out, which may be a password that slipped there, and what concerns code.
      const rule = (message: string) => message.replace(/(?:; a value from| \(found: ).*$/s, '');
      throw isLockConfigError(error) ? usageFailure(rule(error.message)) : error;
    }
  }

  /** A whole number of at most nine digits, from 1 on. */
  count(option: string, fallback: number): number {
    const value = this.options.get(option);
    if (value === undefined) return fallback;
    if (/^[1-9]\d{0,8}$/.test(value)) return Number(value);
    throw usageFailure(`--${option} must be a whole number from 1 to 999,999,999`);
  }
}
