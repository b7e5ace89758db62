const floats = new Float64Array(1);
const words = new Uint32Array(floats.buffer);

/** A number that differs where two runs differ: FNV-1a, twice. */
export class Digest {
  private a = 0x811c9dc5;
  private b = 0x01000193;

  add(time: number, kind: number): void {
    floats[0] = time;
    this.word(words[0]!);
    this.word(words[1]!);
    this.word(kind);
  }

  text(text: string): void {
    for (let index = 0; index < text.length; index++) this.word(text.charCodeAt(index));
  }

  get value(): string {
    return [this.a, this.b].map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
  }

  private word(word: number): void {
    this.a = Math.imul(this.a ^ word, 0x01000193);
    this.b = Math.imul(this.b ^ word ^ (this.a >>> 15), 0x85ebca6b);
  }
}
