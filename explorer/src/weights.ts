/** The recurrent matrix W, dense or as a sum of modes. W[i, j] is the weight from neuron j to neuron i. */

import type { Modes } from "./data";

export interface Weights {
  readonly neurons: number;
  /** out = W v. */
  product(v: ArrayLike<number>, out: Float64Array): void;
  /** Means of W over blocks of rows and columns, both in a given order: (bins, bins), row by row. */
  blocks(order: ArrayLike<number>, bins: number): Float64Array;
}

export class Dense implements Weights {
  readonly neurons: number;

  /** columns: one column after the other. */
  constructor(readonly columns: Float32Array) {
    this.neurons = Math.round(Math.sqrt(columns.length));
  }

  product(v: ArrayLike<number>, out: Float64Array): void {
    const { columns, neurons: n } = this;
    out.fill(0);
    // half of the neurons of a ReLU network are silent, and their columns are skipped; the others go four at a time
    const active: number[] = [];
    for (let j = 0; j < n; j++) if (v[j] !== 0) active.push(j);
    let k = 0;
    for (; k + 4 <= active.length; k += 4) {
      const [a, b, c, d] = [active[k] * n, active[k + 1] * n, active[k + 2] * n, active[k + 3] * n];
      const [va, vb, vc, vd] = [v[active[k]], v[active[k + 1]], v[active[k + 2]], v[active[k + 3]]];
      for (let i = 0; i < n; i++) {
        out[i] += columns[a + i] * va + columns[b + i] * vb + columns[c + i] * vc + columns[d + i] * vd;
      }
    }
    for (; k < active.length; k++) {
      const [start, value] = [active[k] * n, v[active[k]]];
      for (let i = 0; i < n; i++) out[i] += columns[start + i] * value;
    }
  }

  blocks(order: ArrayLike<number>, bins: number): Float64Array {
    const n = this.neurons;
    const bin = places(order, bins);
    const sums = new Float64Array(bins * bins);
    for (let j = 0; j < n; j++) {
      for (let i = 0; i < n; i++) sums[bin[i] * bins + bin[j]] += this.columns[j * n + i];
    }
    return means(sums, bin, bins);
  }
}

export class Factored implements Weights {
  readonly neurons: number;

  /** The first `count` modes; `neurons` for the case that there are none. */
  constructor(
    readonly modes: Modes,
    neurons: number,
    readonly count = modes.values.length,
  ) {
    this.neurons = neurons;
  }

  product(v: ArrayLike<number>, out: Float64Array): void {
    const n = this.neurons;
    out.fill(0);
    for (let k = 0; k < this.count; k++) {
      const [left, right] = [this.modes.left[k], this.modes.right[k]];
      let along = 0;
      for (let j = 0; j < n; j++) along += right[j] * v[j];
      along *= this.modes.values[k];
      if (along !== 0) for (let i = 0; i < n; i++) out[i] += left[i] * along;
    }
  }

  blocks(order: ArrayLike<number>, bins: number): Float64Array {
    const bin = places(order, bins);
    const sums = new Float64Array(bins * bins);
    for (let k = 0; k < this.count; k++) {
      const [left, right] = [new Float64Array(bins), new Float64Array(bins)];
      for (let i = 0; i < this.neurons; i++) {
        left[bin[i]] += this.modes.left[k][i];
        right[bin[i]] += this.modes.right[k][i] * this.modes.values[k];
      }
      for (let a = 0; a < bins; a++) for (let b = 0; b < bins; b++) sums[a * bins + b] += left[a] * right[b];
    }
    return means(sums, bin, bins);
  }
}

/** W + level sqrt(<W^2>) xi, as a dense matrix; xi is drawn from N(0, 1). */
export function noisy(weights: Weights, level: number, gaussian: () => number): Dense {
  const n = weights.neurons;
  const columns = new Float32Array(n * n);
  const unit = new Float64Array(n);
  const column = new Float64Array(n);
  let squares = 0;
  for (let j = 0; j < n; j++) {
    unit[j] = 1;
    weights.product(unit, column);
    unit[j] = 0;
    columns.set(column, j * n);
    for (let i = 0; i < n; i++) squares += column[i] * column[i];
  }
  const size = level * Math.sqrt(squares / (n * n));
  for (let i = 0; i < columns.length; i++) columns[i] += size * gaussian();
  return new Dense(columns);
}

/** The bin of each neuron: its rank in the order, in as many equal parts. */
function places(order: ArrayLike<number>, bins: number): Uint16Array {
  const bin = new Uint16Array(order.length);
  for (let rank = 0; rank < order.length; rank++) bin[order[rank]] = Math.floor((rank * bins) / order.length);
  return bin;
}

function means(sums: Float64Array, bin: Uint16Array, bins: number): Float64Array {
  const sizes = new Float64Array(bins);
  for (const b of bin) sizes[b]++;
  return sums.map((sum, at) => sum / (sizes[Math.floor(at / bins)] * sizes[at % bins]));
}
