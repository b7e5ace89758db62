/** A reason, and its origin. @param actor empty if that is not known */
export const signed = (reason: string, actor: string): string =>
  actor === '' ? `${reason} (on the board)` : `${reason} (${actor}, on the board)`;
