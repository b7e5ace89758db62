/** A reason, and where it comes from. @param actor empty where that is not known */
export const signed = (reason: string, actor: string): string =>
  actor === '' ? `${reason} (on the board)` : `${reason} (${actor}, on the board)`;
