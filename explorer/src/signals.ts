/** Inputs, step by step, as in `rni.task`. */

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export function uniform(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** N(0, 1) by Box and Muller, two at a time. */
export function normal(random: () => number): () => number {
  let spare: number | null = null;
  return () => {
    if (spare !== null) {
      const value = spare;
      spare = null;
      return value;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/** The next input of each channel. */
export type Signal = () => number[];

export type Kind = "noise" | "bursts" | "pulses" | "none";

export function signal(kind: Kind, channels: number, random: () => number): Signal {
  const each = (next: () => number): Signal => {
    return () => Array.from({ length: channels }, next);
  };
  const gaussian = normal(random);
  if (kind === "noise") return each(gaussian);
  if (kind === "pulses") return each(() => (random() < 0.05 ? gaussian() : 0));
  if (kind === "none") return each(() => 0);
  const trains = Array.from({ length: channels }, () => train(random));
  return () => trains.map((next) => next());
}

const [LENGTH, GAP, STARTS, DENSITY, BACKGROUND] = [25, 10, 20 / 1000, 0.95, 0.05];

/** Bursts of one sign between long quiet stretches: the structured test sequences of Figs 6 and 9. */
function train(random: () => number): () => number {
  let since = LENGTH + GAP; // the last start
  let sign = 1;
  return () => {
    since++;
    if (since >= LENGTH + GAP && random() < STARTS) {
      since = 0;
      sign = random() < 0.5 ? -1 : 1;
    }
    if (since < LENGTH) return random() < DENSITY ? sign : 0;
    const quiet = random();
    return quiet < BACKGROUND ? -1 : quiet > 1 - BACKGROUND ? 1 : 0;
  };
}
