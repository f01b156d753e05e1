import assert from "node:assert/strict";
import { test } from "node:test";
import { activation } from "../src/activation";
import { type Described, half, type Modes, unpack } from "../src/data";
import { Activities, Trace } from "../src/history";
import { effectiveDecay, integrate, relativeError, silencedTask } from "../src/measure";
import { Network } from "../src/network";
import { mixing, ordered, population, selectivity, standingOut } from "../src/order";
import { Session, simulate } from "../src/session";
import { normal, signal, uniform } from "../src/signals";
import { Dense, Factored, noisy } from "../src/weights";

const random = uniform(5);
const vector = (n: number): Float32Array => Float32Array.from({ length: n }, () => random() - 0.5);
const packed = (values: ArrayLike<number>): { type: "float32"; data: string } => ({
  type: "float32",
  data: Buffer.from(Float32Array.from(values).buffer).toString("base64"),
});
const modes = (n: number, rank: number, channels = 1): Modes => ({
  values: Array.from({ length: rank }, (_, k) => 1 / (k + 1)),
  left: Array.from({ length: rank }, () => vector(n)),
  right: Array.from({ length: rank }, () => vector(n)),
  map: Array.from({ length: rank }, () => Array.from({ length: channels }, () => random() - 0.5)),
  offset: Array.from({ length: rank }, () => 0),
});
/** The same matrix, element by element. */
const dense = (m: Modes, n: number): Dense => {
  const columns = new Float32Array(n * n);
  for (let j = 0; j < n; j++) {
    for (let i = 0; i < n; i++) columns[j * n + i] = m.values.reduce((sum, s, k) => sum + s * m.left[k][i] * m.right[k][j], 0);
  }
  return new Dense(columns);
};
const close = (a: ArrayLike<number>, b: ArrayLike<number>, tolerance = 1e-6): void => {
  assert.equal(a.length, b.length);
  for (let i = 0; i < a.length; i++) assert.ok(Math.abs(a[i] - b[i]) <= tolerance, `${i}: ${a[i]} and ${b[i]}`);
};

/** One linear channel whose neurons all hold the integral: W = 1 1' gamma / n, e = 1, d = 1 / n. */
const described = (n: number, decay: number): Described => ({
  name: "test",
  version: "",
  neurons: n,
  decays: [decay],
  scales: [1],
      leak: 1,
  activation: { name: "linear" },
  encoders: packed(new Float32Array(n).fill(1)),
  decoders: packed(new Float32Array(n).fill(1 / n)),
  recurrent: null,
  modes: {
    values: [decay],
    left: packed(new Float32Array(n).fill(n ** -0.5)),
    right: packed(new Float32Array(n).fill(n ** -0.5)),
    map: [[n ** 0.5]],
    offset: [0],
  },
  spectrum: [decay],
  signs: null,
  losses: [],
  snapshots: [],
});

test("half precision numbers are read as they are", () => {
  const cases: [number, number][] = [[0x3c00, 1], [0xc000, -2], [0x7bff, 65504], [0x0001, 2 ** -24], [0x3555, 0.333251953125]];
  for (const [bits, value] of cases) assert.equal(half(bits), value);
  const two = Buffer.from(new Uint16Array([0x3c00, 0xb800]).buffer).toString("base64");
  assert.deepEqual([...unpack({ type: "float16", data: two })], [1, -0.5]);
});

test("a factored W acts as the matrix that it is", () => {
  const m = modes(7, 3);
  const [v, a, b] = [vector(7), new Float64Array(7), new Float64Array(7)];
  v[2] = 0;
  new Factored(m, 7).product(v, a);
  dense(m, 7).product(v, b);
  close(a, b);
});

test("blocks are means of W in the given order", () => {
  const m = modes(6, 2);
  const order = Uint32Array.from([5, 3, 1, 0, 2, 4]);
  const w = dense(m, 6);
  const blocks = w.blocks(order, 3);
  const mean = [5, 3].flatMap((i) => [2, 4].map((j) => w.columns[j * 6 + i])).reduce((a, b) => a + b) / 4;
  close([blocks[2]], [mean]);
  close(new Factored(m, 6).blocks(order, 3), blocks);
});

test("noise on W has the size that it is given", () => {
  const w = dense(modes(60, 2), 60);
  const other = noisy(new Factored(modes(60, 0), 60), 0.3, normal(uniform(1)));
  assert.ok(other.columns.every((value) => value === 0));
  const moved = noisy(w, 0.3, normal(uniform(1))).columns.map((value, i) => value - w.columns[i]);
  const size = (values: Float32Array): number => Math.hypot(...values);
  assert.ok(Math.abs(size(moved) / size(w.columns) - 0.3) < 0.02);
});

for (const leak of [1, 0.3]) test(`the network follows its equation, silent neurons included, with a leak of ${leak}`, () => {
  const m = modes(5, 2);
  const [e, d, f] = [[vector(5), vector(5)], [vector(5), vector(5)], activation("relu")];
  const net = new Network(new Factored(m, 5), e, d, f, undefined, leak);
  net.active[3] = 0;
  net.feed();
  let h = new Array(5).fill(0);
  for (const x of [[1, -0.5], [0, 2], [0.3, 0]]) {
    net.step(x);
    const v = h.map((value, j) => value + (j === 3 ? 0 : x[0] * e[0][j] + x[1] * e[1][j]));
    const w = dense(m, 5);
    const nu = h.map((_, i) => v.reduce((sum, value, j) => sum + w.columns[j * 5 + i] * value, 0));
    h = h.map((before, i) => (i === 3 ? 0 : (1 - leak) * before + leak * Math.max(0, nu[i])));
    close(net.h, h);
    close(net.y, d.map((decoder) => h.reduce((sum, value, i) => sum + decoder[i] * value, 0)));
  }
});

test("activations have the values of their formulas", () => {
  assert.equal(activation("relu")(-1, 0), 0);
  assert.ok(Math.abs(activation("sigmoid", { slope: 2, threshold: 1 })(1, 0) - 0.5) < 1e-12);
  assert.equal(activation("softplus")(1e4, 0), 1e4);
  assert.ok(Math.abs(activation("softplus", { slope: 1 })(0, 0) - Math.LN2) < 1e-12);
  assert.equal(activation("rectified_power")(3, 0), 9);
  assert.ok(Math.abs(activation("sigmoid", { slope: packed([1, 4]) })(1.1, 1) - 1 / (1 + Math.exp(-4))) < 1e-6);
});

test("a network made to integrate integrates", () => {
  const inputs = Array.from({ length: 300 }, () => [random() - 0.5]);
  let target = 0;
  const wanted = inputs.map(([x]) => (target = integrate(target, x, 0.9, 1)));
  close(simulate(described(8, 0.9), inputs).map(([y]) => y), wanted, 1e-5);
});

test("silencing a fraction p multiplies the decay by 1 - p", () => {
  const session = new Session(described(500, 0.95));
  session.disturb({ silenced: 0.2 });
  assert.equal(Math.round(500 * session.silent), 100);
  for (let t = 0; t < 300; t++) session.step();
  const [y, x] = [session.output[0].all, session.input[0].all];
  assert.ok(Math.abs(effectiveDecay(y, x) - silencedTask(0.95, 1, 0.2).decay) < 1e-6);
  assert.ok(relativeError(y, session.predicted[0].all) < 1e-6);
  session.restore();
  assert.equal(session.silent, 0);
});

test("a larger fraction silences those of a smaller one and more", () => {
  const session = new Session(described(200, 0.95));
  session.disturb({ silenced: 0.1 });
  const few = session.network.active.slice();
  session.disturb({ silenced: 0.3 });
  assert.ok(few.every((active, i) => active || !session.network.active[i]));
});

test("the same inputs again give the same outputs again", () => {
  const session = new Session(described(20, 0.9));
  for (let t = 0; t < 50; t++) session.step();
  const before = [...session.output[0].all];
  session.replay();
  assert.deepEqual([...session.output[0].all], before);
  session.disturb({ modes: 0 });
  session.replay();
  assert.ok(session.output[0].all.every((y) => y === 0));
});

test("what runs away stops, and says so", () => {
  const session = new Session(described(20, 1.5));
  for (let t = 0; t < 400; t++) session.step();
  assert.ok(session.ranAway);
  assert.ok(session.output[0].all.every(Number.isFinite));
});

test("the effective decay is that of the integral", () => {
  const x = Array.from({ length: 200 }, () => random() - 0.5);
  let y = 0;
  const all = x.map((value) => (y = integrate(y, value, 0.97, 2)));
  assert.ok(Math.abs(effectiveDecay(all, x) - 0.97) < 1e-9);
  assert.ok(Number.isNaN(effectiveDecay(new Array(50).fill(0), new Array(50).fill(0))));
});

test("neurons are sorted by population, and by angle", () => {
  const m: Modes = { values: [1, 1], left: [Float32Array.of(1, 0, -2, 0.1), Float32Array.of(0, 3, 0, -0.2)], right: [], map: [[1, 0], [0, 1]], offset: [0, 0] };
  const s = selectivity(m, 4, 2);
  assert.deepEqual([0, 1, 2, 3].map((i) => population(s, i)), [0, 2, 1, 3]);
  assert.deepEqual([...ordered("population", s, 4, null)], [0, 2, 1, 3]);
  assert.deepEqual([...ordered("angle", s, 4, null)], [0, 1, 2, 3]);
  assert.deepEqual([...ordered("signs", s, 4, Float32Array.of(-1, 1, 1, -1))], [2, 1, 0, 3]);
});

test("mixing is 0 where each neuron codes one channel and 1 where all are alike", () => {
  const of = (a: number[], b: number[]): number =>
    mixing({ channels: [Float64Array.from(a), Float64Array.from(b)], offset: new Float64Array(a.length) });
  assert.equal(of([1, 0], [0, -2]), 0);
  assert.equal(of([1, -2], [1, 2]), 1);
});

test("singular values that stand out are those before the largest gap", () => {
  assert.equal(standingOut([3, 2.5, 0.1, 0.08]), 2);
  assert.equal(standingOut([2, 1]), 2);
  assert.equal(standingOut([]), 0);
});

test("bursts are of one sign and leave the gap between them", () => {
  const next = signal("bursts", 1, uniform(3));
  const x = Array.from({ length: 20000 }, () => next()[0]);
  assert.ok(x.every((value) => [-1, 0, 1].includes(value)));
  const busy = x.filter((value) => value !== 0).length / x.length;
  assert.ok(busy > 0.3 && busy < 0.6, `${busy}`);
});

test("a trace keeps the last values, oldest first", () => {
  const trace = new Trace(3);
  for (const value of [1, 2, 3, 4]) trace.push(value);
  assert.deepEqual([...trace.all], [2, 3, 4]);
  const activities = new Activities(2, 3, 4);
  for (const value of [1, 2, 3]) activities.push(Float64Array.of(value, -value));
  assert.equal(activities.length, 2);
  assert.deepEqual([...activities.at(1)], [2, -2]);
});
