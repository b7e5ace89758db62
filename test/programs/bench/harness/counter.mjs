import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/** A number in a file that nothing guards but the lock under test: where two are in at once, a step is lost. */
export class Counter {
  constructor(file) {
    this.descriptor = openSync(file, 'r+');
    this.bytes = Buffer.alloc(8);
  }

  /** One critical section, which takes `hold` ms. */
  async step(hold) {
    const before = this.read();
    if (hold > 0) await sleep(hold);
    else await undefined;
    this.write(before + 1);
  }

  read() {
    readSync(this.descriptor, this.bytes, 0, 8, 0);
    return this.bytes.readDoubleLE();
  }

  write(value) {
    this.bytes.writeDoubleLE(value);
    writeSync(this.descriptor, this.bytes, 0, 8, 0);
  }

  close() {
    closeSync(this.descriptor);
  }
}
