import { inQuotes } from '../runtime/text.js';

/** A service that asks for a lock that another has, or has taken it by force. */
export interface Asker {
  /** The `label` of the LockService that was called. */
  readonly by: string;
  /** The `reason` of the call. */
  readonly reason: string | undefined;
}

/** A request to release a lock, as a holder gets it. */
export interface AskedHolder extends Asker {
  /** The same for all holders that one request asks. */
  readonly request: string;
  /** How many holds of the lock the holder's service has. */
  readonly holders: number;
}

/** A longer reason is more likely a body than a sentence, and each holder gets it in a message. */
export const MAX_REASON = 1_000;

/** For messages and log lines. */
export const describeAsker = ({ by, reason }: Asker): string => `"${inQuotes(by)}"${because(reason)}`;

/** The end of a log line about an action. */
export const because = (reason: string | undefined): string =>
  reason === undefined ? '' : `: "${inQuotes(reason)}"`;
