/** The paper in five minutes. */

import { mixing } from "./order";
import type { Session } from "./session";

export interface Stop {
  title: string;
  text: string;
  /** What to set before looking, and where to look. */
  set: { kind?: Session["kind"]; silenced?: number; modes?: number | null; learn?: boolean };
  look: string;
}

const percent = (part: number): string => `${Math.round(100 * part)} %`;

export function stops(session: Session): Stop[] {
  const { channels, neurons, described, signs } = session;
  const [several, gamma] = [channels > 1, described.decays[0]];
  const place = channels === 1 ? "a line" : channels === 2 ? "a plane" : `${channels} dimensions`;
  const rank = channels + (signs ? 1 : 0);
  const exact = described.modes.values.length === rank && !described.recurrent;
  const pure = several && mixing(session.selectivity) < 0.1;
  const p = 0.2;
  const lasts = (decay: number): string => (decay < 1 ? `about ${Math.max(1, Math.round(-1 / Math.log(decay)))} steps` : "for ever");
  const found: Stop[] = [
    {
      title: "An integrator adds up its input and slowly forgets",
      text: `The integral is ȳₜ = γ (ȳₜ₋₁ + s xₜ): with γ = ${gamma} it lasts ${lasts(gamma)}. The thick grey line is the integral, the coloured one what the network puts out, the thin one at the foot the input. Give it single pulses and see each of them fade.`,
      set: { kind: "pulses" },
      look: "outputs",
    },
    {
      title: several ? `One network, ${channels} integrals at once` : `${neurons} neurons, one integral`,
      text: `The network is hₜ = f(W (hₜ₋₁ + Σ xₜ e)): each input comes in along an encoder e, all ${neurons} neurons talk to each other through W, and each output is a weighted sum d · h. ${several ? "All channels share the same neurons. " : ""}Push ${several ? "the channels" : "it"} yourself, with the sliders or with Q and A${several ? ", W and S, …" : ""}.`,
      set: { kind: "none" },
      look: "outputs",
    },
    {
      title: `The currents live on ${place}`,
      text: `The ${neurons} currents ν = W (h + Σ x e) could go anywhere, but stay on ${place}: that of the ${rank} leading singular vectors of W. There the coordinates α are a linear map of the integrals, the coloured ${several ? "grid" : "line"}. The ring is where the integrals say the currents should be, the dot where they are. Drag to turn it.`,
      set: { kind: session.homogeneous ? "noise" : "bursts" },
      look: "manifold",
    },
    several
      ? {
          title: pure ? "Here each neuron codes one channel" : "Neurons mix channels",
          text: `Neuron i codes the combination sᵢ · ȳ of the integrals. A point on an axis codes one channel, one between the axes several. ${pure ? "In this network nearly all lie on the axes; trained networks mix." : "Mixed selectivity is the rule: few neurons lie on an axis."} Hover to see what a neuron does, click to silence it, drag to choose many and find them in the other views.`,
          set: {},
          look: "selectivity",
        }
      : {
          title: "Two populations carry the sign",
          text: "Neurons with s > 0 are active while the integral is positive, those with s < 0 while it is negative. Hover to see what a neuron does, click to silence it, drag to choose many and find them in the other views.",
          set: {},
          look: "selectivity",
        },
    {
      title: "Silence some neurons, and it forgets faster",
      text: `With a fraction p silent, each turn through W loses that part: the decay becomes γ (1 − p), if they are drawn at random. ${percent(p)} of them turn ${gamma} into ${(gamma * (1 - p)).toPrecision(3)}, which lasts ${lasts(gamma * (1 - p))}. The dashed line is the prediction. No neuron matters much, but their number does.`,
      set: { silenced: p, kind: session.homogeneous ? "noise" : "bursts" },
      look: "outputs",
    },
    exact
      ? {
          title: `W has rank ${rank}`,
          text: `W has ${neurons} × ${neurons} weights, but they are made of ${several ? `${rank} modes, one for each channel` : "one mode"}, and nothing else. ${several ? "Take one of them away, and one combination of the channels is lost." : "Take it away, and nothing is left."}`,
          set: { modes: rank - 1 },
          look: "outputs",
        }
      : {
          title: `${rank} ${rank === 1 ? "mode does" : "modes do"} most of it`,
          text: `W has ${neurons} × ${neurons} weights, but its leading singular values stand out: one for each channel${signs ? ", and one that Dale's law adds" : ""}. Cut W to ${rank} ${rank === 1 ? "mode" : "modes"}: the integrals are still there, less exactly. ${several ? "Take one more away, and one combination of the channels is lost." : ""}`,
          set: { modes: rank },
          look: "outputs",
        },
  ];
  if (described.snapshots.length) {
    found.push({
      title: "Watch it learn",
      text: "From W = 0, descent lets the modes grow one after the other; the manifold opens, and the outputs come to follow the integrals, far beyond the few steps that it is trained on.",
      set: { learn: true },
      look: "learning",
    });
  }
  return found;
}
