/** What the page is given: the network as `rni.pages.explorer.describe` writes it, and its numbers unpacked. */

export interface Packed {
  type: "float32" | "float16" | "int8";
  data: string;
}

export interface PackedModes {
  values: number[];
  left: Packed; // (modes, neurons)
  right: Packed;
  map: number[][]; // R, (modes, channels)
  offset: number[];
}

export type Parameter = number | Packed;

export interface Described {
  name: string;
  version: string;
  neurons: number;
  decays: number[];
  scales: number[];
  leak: number;
  activation: { name: string; slope?: Parameter; threshold?: Parameter; exponent?: Parameter };
  encoders: Packed; // (channels, neurons)
  decoders: Packed;
  recurrent: Packed | null; // column after column; null where the modes are the whole of W
  modes: PackedModes;
  spectrum: number[];
  signs: Packed | null;
  losses: [number, number][];
  snapshots: { step: number; loss: number; modes: PackedModes; encoders?: Packed; decoders?: Packed }[];
}

/** W = sum_k sigma_k l_k r_k', and alpha = R ybar + offset for the coordinates alpha_k = l_k . nu. */
export interface Modes {
  values: number[];
  left: Float32Array[];
  right: Float32Array[];
  map: number[][];
  offset: number[];
}

export function bytes(base64: string): Uint8Array {
  const native = Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array };
  if (native.fromBase64) return native.fromBase64(base64); // where the browser has it
  const text = atob(base64);
  const found = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) found[i] = text.charCodeAt(i);
  return found;
}

/** IEEE half precision, by its parts: sign, five bits of exponent, ten of fraction. */
export function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

export function unpack({ type, data }: Packed): Float32Array {
  const raw = bytes(data);
  if (type === "int8") return Float32Array.from(new Int8Array(raw.buffer));
  if (type === "float32") return new Float32Array(raw.buffer);
  return Float32Array.from(new Uint16Array(raw.buffer), half);
}

/** (rows, neurons) as its rows, which share the memory. */
export function rows(packed: Packed, neurons: number): Float32Array[] {
  const all = unpack(packed);
  return Array.from({ length: all.length / neurons }, (_, k) => all.subarray(k * neurons, (k + 1) * neurons));
}

export function unpackModes(modes: PackedModes, neurons: number): Modes {
  return { ...modes, left: rows(modes.left, neurons), right: rows(modes.right, neurons) };
}
