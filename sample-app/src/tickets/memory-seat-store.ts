import { SeatStore } from './seat-store.js';

/** For a single instance. */
export class MemorySeatStore extends SeatStore {
  private count = 0;

  async sold(): Promise<number> {
    return this.count;
  }

  async setSold(count: number): Promise<void> {
    this.count = count;
  }
}
