/** ms after which somebody who has not answered never will. */
const LIMIT = 120_000;

/** What another process was asked and has not answered yet. */
export class Calls {
  pending = new Map();

  /** @param send is given the id that the answer bears */
  async ask(what, send) {
    const id = String(Math.random());
    const answer = new Promise((resolve, reject) => this.pending.set(id, { resolve, reject }));
    const limit = setTimeout(() => this.reject(id, `${what}: no answer`), LIMIT);
    send(id);
    try {
      return await answer;
    } finally {
      clearTimeout(limit);
      this.pending.delete(id);
    }
  }

  resolve(id, result) {
    this.pending.get(id)?.resolve(result);
  }

  reject(id, message) {
    this.pending.get(id)?.reject(new Error(message));
  }

  /** The process has ended: it answers nothing any more. */
  end(message) {
    for (const id of this.pending.keys()) this.reject(id, message);
  }
}
