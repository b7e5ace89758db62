import { types } from 'node:util';
import { isLockUnavailableError } from './error-guards.js';

/**
 * Why a store has not answered. A LockUnavailableError has a message for clients, without the reason: the reason is in
 * the outcome of each node, or in the cause.
 */
export function outageOf(error: unknown): string {
  if (!isLockUnavailableError(error)) return messagesOf(error).join(': ') || String(error);
  const nodes = error.outcomes.map(
    ({ node, outcome, error }) => `${node} ${messagesOf(error).join(': ') || outcome}`,
  );
  return nodes.join('; ') || messagesOf(error.cause).join(': ') || error.message;
}

/** The messages of an error and of its causes, the outer one first, each once. */
function messagesOf(error: unknown): string[] {
  const messages = new Set<string>();
  // The system gives some errors no message, but a code.
  for (let at = error; isError(at) && messages.size < 4; at = at.cause)
    messages.add(at.message || ((at as NodeJS.ErrnoException).code ?? at.name));
  return [...messages];
}

/** Errors of the system come from another realm if the code runs in its own one. */
const isError = (error: unknown): error is Error => error instanceof Error || types.isNativeError(error);
