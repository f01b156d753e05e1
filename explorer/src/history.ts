/** What happened in the last steps. */

/** The last values of one number, oldest first. */
export class Trace {
  private readonly values: Float64Array;
  private count = 0;

  constructor(readonly length: number) {
    this.values = new Float64Array(length);
  }

  push(value: number): void {
    this.values.copyWithin(0, 1);
    this.values[this.length - 1] = value;
    this.count = Math.min(this.count + 1, this.length);
  }

  clear(): void {
    this.count = 0;
  }

  get last(): number {
    return this.count ? this.values[this.length - 1] : 0;
  }

  /** A view, to be read before the next push. */
  get all(): Float64Array {
    return this.values.subarray(this.length - this.count);
  }
}

/** The last activities of all neurons, each step in one piece. */
export class Activities {
  readonly length: number;
  private readonly values: Float32Array;
  private next = 0;
  count = 0;
  total = 0; // pushes so far
  cleared = 0; // times

  constructor(
    readonly neurons: number,
    length: number,
    memory = 16e6,
  ) {
    this.length = Math.max(1, Math.min(length, Math.floor(memory / neurons)));
    this.values = new Float32Array(this.length * neurons);
  }

  push(h: Float64Array): void {
    this.values.set(h, this.next * this.neurons);
    this.next = (this.next + 1) % this.length;
    this.total++;
    this.count = Math.min(this.count + 1, this.length);
  }

  clear(): void {
    this.count = 0;
    this.cleared++;
  }

  /** The activities `ago` steps before the last, 0 for the last itself. */
  at(ago: number): Float32Array {
    const place = (this.next - 1 - ago + 2 * this.length) % this.length;
    return this.values.subarray(place * this.neurons, (place + 1) * this.neurons);
  }
}
