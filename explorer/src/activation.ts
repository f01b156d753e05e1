/** Activations h = f(nu), neuron by neuron, as in `rni.activation`. */

import { type Described, type Parameter, unpack } from "./data";

/** f(nu) of neuron i. */
export type Activation = (nu: number, i: number) => number;

type Parameters = Omit<Described["activation"], "name">;

const of = (parameter: Parameter | undefined, usual: number): ((i: number) => number) => {
  if (parameter === undefined) return () => usual;
  if (typeof parameter === "number") return () => parameter;
  const values = unpack(parameter);
  return (i) => values[i];
};

const families: Record<string, (p: Parameters) => Activation> = {
  linear: () => (nu) => nu,
  relu: () => (nu) => (nu > 0 ? nu : 0),
  sigmoid: (p) => {
    const [k, theta] = [of(p.slope, 50), of(p.threshold, 0.1)];
    return (nu, i) => 1 / (1 + Math.exp(-k(i) * (nu - theta(i))));
  },
  tanh: () => (nu) => Math.tanh(nu),
  softplus: (p) => {
    const k = of(p.slope, 50);
    // log(1 + e^z) = max(z, 0) + log(1 + e^-|z|), which no z overflows
    return (nu, i) => (Math.max(k(i) * nu, 0) + Math.log1p(Math.exp(-Math.abs(k(i) * nu)))) / k(i);
  },
  rectified_power: (p) => {
    const power = of(p.exponent, 2);
    return (nu, i) => (nu > 0 ? nu ** power(i) : 0);
  },
};

export const NAMES: Record<string, string> = {
  linear: "linear",
  relu: "ReLU",
  sigmoid: "sigmoid",
  tanh: "tanh",
  softplus: "softplus",
  rectified_power: "rectified power",
};

export function activation(name: string, parameters: Parameters = {}): Activation {
  return families[name](parameters);
}
