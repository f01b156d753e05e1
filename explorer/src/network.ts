/** The network: nu_t = W (h_{t-1} + sum_c x_{c,t} e_c), h_t = (1 - leak) h_{t-1} + leak f(nu_t), y_{c,t} = d_c . h_t. */

import type { Activation } from "./activation";
import type { Weights } from "./weights";

export class Network {
  readonly neurons: number;
  readonly channels: number;
  /** Currents and activities of the present step; at rest before the first. */
  readonly nu: Float64Array;
  readonly h: Float64Array;
  readonly y: Float64Array;
  /** 1, or 0 for a neuron that transmits nothing: no activity, no input. */
  readonly active: Uint8Array;
  /** Noise on the activities, relative to their root mean square. */
  noise = 0;
  private fed: Float64Array[] = [];

  constructor(
    private w: Weights,
    private e: Float32Array[],
    private d: Float32Array[],
    private f: Activation,
    private gaussian: () => number = () => 0,
    private leak = 1,
  ) {
    this.neurons = w.neurons;
    this.channels = e.length;
    this.nu = new Float64Array(this.neurons);
    this.h = new Float64Array(this.neurons);
    this.y = new Float64Array(this.channels);
    this.active = new Uint8Array(this.neurons).fill(1);
    this.feed();
  }

  get weights(): Weights {
    return this.w;
  }

  /** The same network with some of its parts replaced, in the state that it is in. */
  change(parts: { weights?: Weights; encoders?: Float32Array[]; decoders?: Float32Array[]; f?: Activation }): void {
    this.w = parts.weights ?? this.w;
    this.e = parts.encoders ?? this.e;
    this.d = parts.decoders ?? this.d;
    this.f = parts.f ?? this.f;
    this.feed();
  }

  /** W e_c for each channel: to be called when `active` has changed. */
  feed(): void {
    const heard = new Float64Array(this.neurons);
    this.fed = this.e.map((encoder) => {
      for (let i = 0; i < this.neurons; i++) heard[i] = encoder[i] * this.active[i];
      const fed = new Float64Array(this.neurons);
      this.w.product(heard, fed);
      return fed;
    });
  }

  rest(): void {
    this.nu.fill(0);
    this.h.fill(0);
    this.y.fill(0);
  }

  step(x: ArrayLike<number>): void {
    const { nu, h, y, f, leak, active, neurons: n } = this;
    this.w.product(h, nu);
    this.fed.forEach((fed, c) => {
      const size = x[c];
      if (size !== 0) for (let i = 0; i < n; i++) nu[i] += size * fed[i];
    });
    for (let i = 0; i < n; i++) h[i] = ((1 - leak) * h[i] + leak * f(nu[i], i)) * active[i];
    if (this.noise > 0) {
      let squares = 0;
      for (let i = 0; i < n; i++) squares += h[i] * h[i];
      const size = this.noise * Math.sqrt(squares / n);
      for (let i = 0; i < n; i++) h[i] += size * this.gaussian() * active[i];
    }
    this.d.forEach((decoder, c) => {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += decoder[i] * h[i];
      y[c] = sum;
    });
  }
}

/** alpha_k = l_k . nu. */
export function coordinate(left: Float32Array | undefined, nu: Float64Array): number {
  let sum = 0;
  if (left) for (let i = 0; i < nu.length; i++) sum += left[i] * nu[i];
  return sum;
}
