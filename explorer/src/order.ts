/** Selectivity s_i, h_i = f(s_i . ybar + b_i), and the orders of neurons that it gives. */

import type { Modes } from "./data";

export interface Selectivity {
  /** s_{i,c} = sum_k l_{k,i} R_{k,c}: one array of all neurons for each channel. */
  channels: Float64Array[];
  /** b_i = sum_k l_{k,i} alpha0_k. */
  offset: Float64Array;
}

export function selectivity(modes: Modes, neurons: number, channels: number): Selectivity {
  const along = (coefficients: number[]): Float64Array => {
    const sum = new Float64Array(neurons);
    coefficients.forEach((size, k) => {
      const left = modes.left[k];
      for (let i = 0; i < neurons; i++) sum[i] += left[i] * size;
    });
    return sum;
  };
  return {
    channels: Array.from({ length: channels }, (_, c) => along(modes.map.map((row) => row[c]))),
    offset: along(modes.offset),
  };
}

/** |s_i|. */
export function strength(s: Selectivity, i: number): number {
  let squares = 0;
  for (const values of s.channels) squares += values[i] * values[i];
  return Math.sqrt(squares);
}

/** The channel that a neuron codes most, and with which sign: population 2c for +, 2c + 1 for -. */
export function population(s: Selectivity, i: number): number {
  let best = 0;
  s.channels.forEach((values, c) => {
    if (Math.abs(values[i]) > Math.abs(s.channels[best][i])) best = c;
  });
  return 2 * best + (s.channels[best][i] < 0 ? 1 : 0);
}

/** Mean mixing, weighted by |s_i|^2: 0 where each neuron codes one channel, 1 where it codes all alike. */
export function mixing(s: Selectivity): number {
  const neurons = s.offset.length;
  let [sum, total] = [0, 0];
  for (let i = 0; i < neurons; i++) {
    const squares = s.channels.map((values) => values[i] ** 2);
    const weight = squares.reduce((a, b) => a + b, 0);
    const fourth = squares.reduce((a, b) => a + b * b, 0);
    if (fourth > 0) sum += (weight * (weight ** 2 / fourth - 1)) / (s.channels.length - 1);
    total += weight;
  }
  return sum / total;
}

/** How many singular values stand out: the k with the largest gap sigma_k / sigma_{k+1}, down to a hundredth of the first. */
export function standingOut(values: number[]): number {
  const gaps = values.slice(0, 20).map((value, k) => value / Math.max(values[k + 1] ?? 0, 0.01 * values[0]));
  return gaps.indexOf(Math.max(...gaps)) + 1;
}

export type Order = "population" | "angle" | "signs" | "stored";

/** Neurons in an order: rank to index. Within a population the strongest come first. */
export function ordered(order: Order, s: Selectivity, neurons: number, signs: Float32Array | null): Uint32Array {
  const index = Uint32Array.from({ length: neurons }, (_, i) => i);
  const by = (key: (i: number) => number): Uint32Array => {
    const keys = Float64Array.from(index, key);
    return index.sort((a, b) => keys[a] - keys[b]);
  };
  const large = index.reduce((most, i) => Math.max(most, strength(s, i)), 1e-300);
  const grouped = (i: number): number => population(s, i) + 1 - (0.999 * strength(s, i)) / large;
  if (order === "angle" && s.channels.length > 1) return by((i) => angle(s.channels[0][i], s.channels[1][i]));
  if (order === "population") return by(grouped);
  if (order === "signs" && signs) return by((i) => (signs[i] < 0 ? 2 * s.channels.length : 0) + grouped(i));
  return index;
}

/** In [0, 2 pi). */
export function angle(x: number, y: number): number {
  const found = Math.atan2(y, x);
  return found < 0 ? found + 2 * Math.PI : found;
}
