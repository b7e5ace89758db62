// What a server answers. All texts of the model are bytes: one character each, from 0 to 255.

/** As `+OK`. */
export class Status {
  constructor(readonly text: string) {}
}

/** As `-ERR …`, and thrown where a command is refused. */
export class Refusal extends Error {}

/** Over RESP3 a map; before, its keys and values in turn. */
export class Pairs {
  constructor(readonly items: readonly Reply[]) {}
}

/** An answer in several parts, each of which stands for itself: as that to SUBSCRIBE with several channels. */
export class Several {
  constructor(readonly pushes: readonly (readonly Reply[])[]) {}
}

export type Reply = string | number | null | Status | Refusal | Pairs | Several | readonly Reply[];

export const OK = new Status('OK');

export const wrongType = (): Refusal =>
  new Refusal('WRONGTYPE Operation against a key holding the wrong kind of value');
export const syntaxError = (): Refusal => new Refusal('ERR syntax error');
export const notAnInteger = (): Refusal => new Refusal('ERR value is not an integer or out of range');
export const wrongCount = (name: string): Refusal =>
  new Refusal(`ERR wrong number of arguments for '${name}' command`);
