/**
 * Knows how many seats are sold, and nothing of locks. An abstract class rather than an interface, because Nest
 * injects by what is there at run time.
 */
export abstract class SeatStore {
  abstract sold(): Promise<number>;
  abstract setSold(count: number): Promise<void>;
}
