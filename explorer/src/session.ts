/** The state of the page without anything of the page: network, inputs, disturbances, choices and what happened. */

import { type Activation, activation } from "./activation";
import { type Described, type Modes, rows, unpack, unpackModes } from "./data";
import { Activities, Trace } from "./history";
import { integrate, silencedTask } from "./measure";
import { coordinate, Network } from "./network";
import { type Order, ordered, type Selectivity, selectivity, strength } from "./order";
import { type Kind, normal, type Signal, signal, uniform } from "./signals";
import { Dense, Factored, noisy, type Weights } from "./weights";

export const STEPS = 400; // that the page shows
export const COORDINATES = 3; // of the current manifold
export const NOISY = 2000; // neurons, up to which noise on W, a full matrix, fits
const RAN_AWAY = 1e9;

export interface Disturbances {
  silenced: number; // fraction
  weights: number; // noise, relative
  states: number; // noise, relative
  modes: number | null; // kept; null: all
  activation: string;
}

export class Session {
  readonly channels: number;
  readonly neurons: number;
  readonly signs: Float32Array | null;
  readonly network: Network;
  readonly input: Trace[];
  readonly output: Trace[];
  readonly target: Trace[];
  readonly predicted: Trace[];
  readonly coordinates: Trace[];
  readonly activities: Activities;
  readonly hand: Float64Array;
  readonly chosen = new Set<number>();
  /** Silenced one by one, beside those that the fraction draws. */
  readonly picked = new Set<number>();
  readonly none: Disturbances;
  disturbed: Disturbances;
  modes!: Modes;
  selectivity!: Selectivity;
  order!: Uint32Array;
  rank!: Uint32Array;
  largest = 1; // |s_i|
  time = 0;
  since = 0; // steps, the last change of the network
  kind: Kind;
  size = 1;
  hovered: number | null = null;
  ordering: Order;
  stage: number;
  silent = 0; // fraction of the neurons
  ranAway = false;
  private draws = 1;
  private readonly random = uniform(1);
  private readonly gaussian = normal(uniform(2));
  private next: Signal;
  private readonly whole: { modes: Modes; weights: Weights; encoders: Float32Array[]; decoders: Float32Array[] };
  private readonly own: Activation;
  private readonly stages = new Map<number, Modes>();

  constructor(readonly described: Described) {
    const { neurons: n, decays } = described;
    this.neurons = n;
    this.channels = decays.length;
    this.signs = described.signs && unpack(described.signs);
    const modes = unpackModes(described.modes, n);
    this.whole = {
      modes,
      weights: described.recurrent ? new Dense(unpack(described.recurrent)) : new Factored(modes, n),
      encoders: rows(described.encoders, n),
      decoders: rows(described.decoders, n),
    };
    this.own = activation(described.activation.name, described.activation);
    const { weights, encoders, decoders } = this.whole;
    this.network = new Network(weights, encoders, decoders, this.own, this.gaussian, described.leak);
    const traces = (count: number): Trace[] => Array.from({ length: count }, () => new Trace(STEPS));
    this.input = traces(this.channels);
    this.output = traces(this.channels);
    this.target = traces(this.channels);
    this.predicted = traces(this.channels);
    this.coordinates = traces(COORDINATES);
    this.activities = new Activities(n, STEPS);
    this.hand = new Float64Array(this.channels);
    this.none = { silenced: 0, weights: 0, states: 0, modes: null, activation: described.activation.name };
    this.disturbed = { ...this.none };
    this.kind = this.homogeneous ? "noise" : "bursts";
    this.next = signal(this.kind, this.channels, this.random);
    this.stage = this.last;
    this.ordering = this.signs ? "signs" : this.channels === 2 ? "angle" : "population";
    this.take(modes);
  }

  /** Linear and ReLU networks integrate inputs of any size. */
  get homogeneous(): boolean {
    return ["linear", "relu"].includes(this.described.activation.name);
  }

  /** The stage of training at which it is the whole network; before it, a snapshot each. */
  get last(): number {
    return Math.max(0, this.described.snapshots.length - 1);
  }

  drive(kind: Kind): void {
    this.kind = kind;
    this.next = signal(kind, this.channels, this.random);
  }

  step(): void {
    const x = this.next().map((value, c) => this.size * value + this.hand[c]);
    this.advance(x);
    this.time++;
  }

  /** The same inputs once more, from rest, with the network as it is now. */
  replay(): void {
    const inputs = this.input.map((trace) => Array.from(trace.all));
    this.clear();
    for (let t = 0; t < inputs[0].length; t++) this.advance(inputs.map((values) => values[t]));
  }

  reset(): void {
    this.clear();
    this.time = 0;
  }

  /** Give the network the parts that the disturbances and the stage of its training call for. */
  disturb(change: Partial<Disturbances>, redraw = false): void {
    if (redraw) this.draws++;
    this.disturbed = { ...this.disturbed, ...change };
    this.network.noise = this.disturbed.states;
    const { activation: name } = this.disturbed;
    const f = name === this.none.activation ? this.own : activation(name);
    this.network.change({ weights: this.weights(), f, ...this.vectors() });
    this.silence();
    this.since = 0;
  }

  /** Go to a stage of training. */
  learn(stage: number): void {
    this.stage = stage;
    let modes = this.stages.get(stage);
    if (!modes) {
      modes = stage === this.last ? this.whole.modes : unpackModes(this.described.snapshots[stage].modes, this.neurons);
      this.stages.set(stage, modes);
    }
    this.take(modes);
    this.disturb({});
  }

  /** Silence or wake one neuron. */
  toggle(i: number): void {
    if (this.network.active[i]) this.picked.add(i);
    else this.picked.delete(i);
    this.silence();
    this.since = 0;
  }

  silenceChosen(): void {
    for (const i of this.chosen) this.picked.add(i);
    this.silence();
    this.since = 0;
  }

  restore(): void {
    this.picked.clear();
    this.disturb(this.none);
  }

  sort(ordering: Order): void {
    this.ordering = ordering;
    this.order = ordered(ordering, this.selectivity, this.neurons, this.signs);
    this.rank = new Uint32Array(this.neurons);
    this.order.forEach((i, rank) => (this.rank[i] = rank));
  }

  private take(modes: Modes): void {
    this.modes = modes;
    this.selectivity = selectivity(modes, this.neurons, this.channels);
    this.largest = 0;
    for (let i = 0; i < this.neurons; i++) this.largest = Math.max(this.largest, strength(this.selectivity, i));
    this.sort(this.ordering);
  }

  private weights(): Weights {
    const { modes: count, weights: level } = this.disturbed;
    const whole = this.stage === this.last ? this.whole.weights : new Factored(this.modes, this.neurons);
    const cut = count === null || count >= this.modes.values.length ? whole : new Factored(this.modes, this.neurons, count);
    return level > 0 && this.neurons <= NOISY ? noisy(cut, level, normal(uniform(100 + this.draws))) : cut;
  }

  private vectors(): { encoders: Float32Array[]; decoders: Float32Array[] } {
    const { encoders, decoders } = this.whole;
    if (this.stage === this.last) return { encoders, decoders };
    const then = this.described.snapshots[this.stage];
    return {
      encoders: then.encoders ? rows(then.encoders, this.neurons) : encoders,
      decoders: then.decoders ? rows(then.decoders, this.neurons) : decoders,
    };
  }

  /** Each neuron has its own number from 0 to 1; those below the fraction are silent, so that a larger one adds to them. */
  private silence(): void {
    const draw = uniform(7 + this.draws);
    const keys = Float64Array.from({ length: this.neurons }, draw);
    const sorted = keys.slice().sort();
    const count = Math.round(this.disturbed.silenced * this.neurons);
    const below = count < this.neurons ? sorted[count] : Infinity;
    const { active } = this.network;
    for (let i = 0; i < this.neurons; i++) active[i] = keys[i] < below || this.picked.has(i) ? 0 : 1;
    this.silent = 1 - active.reduce((sum, one) => sum + one, 0) / this.neurons;
    this.network.feed();
  }

  private clear(): void {
    this.network.rest();
    for (const trace of [this.input, this.output, this.target, this.predicted, this.coordinates].flat()) trace.clear();
    this.activities.clear();
    this.since = 0;
    this.ranAway = false;
  }

  private advance(x: number[]): void {
    if (this.ranAway) return;
    const { network, described } = this;
    network.step(x);
    const p = this.silent;
    x.forEach((value, c) => {
      const [decay, scale] = [described.decays[c], described.scales[c]];
      const expected = silencedTask(decay, scale, p);
      this.input[c].push(value);
      this.output[c].push(network.y[c]);
      this.target[c].push(integrate(this.target[c].last, value, decay, scale));
      this.predicted[c].push(integrate(this.predicted[c].last, value, expected.decay, expected.scale));
      if (!(Math.abs(network.y[c]) < RAN_AWAY)) this.ranAway = true;
    });
    this.coordinates.forEach((trace, k) => trace.push(coordinate(this.modes.left[k], network.nu)));
    this.activities.push(network.h);
    this.since++;
  }
}

/** Outputs (time, channels) of the described network, undisturbed, from rest, on inputs (time, channels). */
export function simulate(described: Described, inputs: number[][]): number[][] {
  const { network } = new Session(described);
  return inputs.map((x) => {
    network.step(x);
    return Array.from(network.y);
  });
}
