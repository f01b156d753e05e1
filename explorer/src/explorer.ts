/** The page: what is in it, tied to the session. */

import "uplot/dist/uPlot.min.css";
import "./explorer.css";
import { activation, type Activation, NAMES } from "./activation";
import type { Described } from "./data";
import type { Trace } from "./history";
import { effectiveDecay, relativeError } from "./measure";
import { type Order, standingOut } from "./order";
import { type Disturbances, NOISY, Session, simulate, STEPS } from "./session";
import type { Kind } from "./signals";
import { channel, type Colours, colours as current, themed } from "./theme";
import { stops } from "./tour";
import { Manifold } from "./views/manifold";
import { Matrix } from "./views/matrix";
import { Outputs } from "./views/outputs";
import { Raster } from "./views/raster";
import { Points } from "./views/selectivity";
import { Losses, Spectrum } from "./views/spectrum";
import { Tuning } from "./views/tuning";

const SPEEDS = [2, 10, 30, 60, 120, 240, 480]; // steps a second
const BUDGET = 12; // milliseconds of simulation a frame
const FEW = 20; // steps, too few to measure a decay
const FIRST = 30; // milliseconds of simulation before the first picture

const get = <T extends HTMLElement>(id: string): T => document.getElementById(id) as T;
const on = (id: string, event: string, then: () => void): void => get(id).addEventListener(event, then);
const value = (id: string): number => Number(get<HTMLInputElement>(id).value);
const say = (id: string, text: string): void => {
  if (get(id).textContent !== text) get(id).textContent = text;
};
const capital = (text: string): string => text[0].toUpperCase() + text.slice(1);
const percent = (part: number): string => `${+(100 * part).toPrecision(2)} %`;
const plain = (number: number): string => (Number.isFinite(number) ? `${+number.toPrecision(3)}` : "–");

const described = JSON.parse(get("network").textContent!) as Described;
const session = new Session(described);
const { channels, neurons } = session;

let playing = !matchMedia("(prefers-reduced-motion: reduce)").matches;
let stale = true; // something other than time has changed
let last = 0;
let owed = 0;
let neuron = 0;
let frames = 0;
let running: ReturnType<typeof setInterval> | null = null; // through training

const redraw = (): void => {
  stale = true;
};

// ---------------------------------------------------------------- views

let colours: Colours = current();
let own: [string, Activation] = ["", activation("linear")];
const f = (): Activation => {
  const name = session.disturbed.activation;
  const parameters = name === described.activation.name ? described.activation : {};
  if (own[0] !== name) own = [name, activation(name, parameters)];
  return own[1];
};
const hovered = (event?: PointerEvent): void => {
  if (session.hovered !== null) neuron = session.hovered;
  if (event) tip(event);
  redraw();
};

const views: { theme(colours: Colours): void }[] = [];
themed(get("theme"), () => {
  colours = current();
  for (const view of views) view.theme(colours);
  if (views.length) legend();
  redraw();
});
const outputs = new Outputs(get("plots"), session, colours);
const manifold = new Manifold(get("manifold"), session, colours, redraw);
const raster = new Raster(get("raster"), session, colours, hovered);
const points = new Points(get("selectivity"), session, colours, hovered);
const tuning = new Tuning(get("tuning"), session, f, colours);
const matrix = new Matrix(get("matrix"), session, colours, hovered);
const spectrum = new Spectrum(get("spectrum"), session, colours);
const learning = described.snapshots.length > 0;
get("learning").hidden = !learning;
const losses = learning ? new Losses(get("losses"), session, colours) : null;
views.push(outputs, manifold, raster, points, tuning, matrix, spectrum, ...(losses ? [losses] : []));

/** Views in sight; others are not drawn. */
const visible = new Set<string>();
const watched = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) visible[isIntersecting ? "add" : "delete"](target.id);
  redraw();
});
const live: [string, () => void][] = [
  ["plots", () => outputs.draw()],
  ["manifold", () => manifold.draw()],
  ["raster", () => raster.draw()],
  ["tuning", () => tuning.draw(neuron)],
];
const still: [string, () => void][] = [
  ["selectivity", () => points.draw()],
  ["matrix", () => matrix.draw()],
  ["spectrum", () => spectrum.draw()],
  ["losses", () => losses?.draw()],
];

function draw(): void {
  for (const [id, show] of [...live, ...(stale ? still : [])]) if (visible.has(id)) show();
  numbers();
  if (stale) describe();
  get("ran-away").hidden = !session.ranAway;
  stale = false;
}

function frame(now: number): void {
  frames++;
  const passed = Math.min(now - last, 100);
  last = now;
  let moved = false;
  if (playing && !session.ranAway) {
    owed = Math.min(owed + (passed / 1000) * SPEEDS[value("speed")], STEPS);
    for (const begun = performance.now(); owed >= 1 && performance.now() - begun < BUDGET; owed--) {
      session.step();
      moved = true;
    }
  }
  if (moved || stale) {
    draw();
    if (!performance.getEntriesByName("picture").length && visible.size) performance.mark("picture");
  }
  requestAnimationFrame(frame);
}

// ---------------------------------------------------------------- words and numbers

const table = get("numbers").querySelector("tbody")!;
const leak = described.leak;
const cells = described.decays.map((decay, c) => {
  const row = table.insertRow();
  const head = document.createElement("th");
  head.scope = "row";
  head.className = "swatch";
  head.textContent = `${c + 1}`;
  head.style.setProperty("--mark", `var(--c${(c % 5) + 1})`);
  row.append(head);
  const [given, ...rest] = Array.from({ length: 4 }, () => row.insertCell());
  given.textContent = plain(decay);
  return rest;
});

function numbers(): void {
  const p = session.silent;
  cells.forEach(([predicted, measured, error], c) => {
    const recent = (trace: Trace): Float64Array => trace.all.slice(-session.since || trace.length);
    const y = recent(session.output[c]);
    const few = session.ranAway || y.length < FEW;
    predicted.textContent = plain(1 - leak + (leak - 1 + described.decays[c]) * (1 - p));
    measured.textContent = few ? "–" : plain(effectiveDecay(y, recent(session.input[c])));
    const wrong = relativeError(y, recent(session.target[c]));
    error.textContent = !Number.isFinite(wrong) ? "–" : wrong > 10 ? "> 1000 %" : wrong < 1e-5 ? "< 0.001 %" : percent(wrong);
  });
}

function describe(): void {
  const { disturbed, none } = session;
  const p = session.silent;
  const changes = [
    p > 0 && `${percent(p)} of the neurons silent: decays predicted to shrink by that part`,
    disturbed.weights > 0 && `noise on every weight, ${percent(disturbed.weights)} of their root mean square`,
    disturbed.states > 0 && `noise on every activity, ${percent(disturbed.states)}`,
    disturbed.modes !== null && `W cut to ${disturbed.modes} of its modes`,
    disturbed.activation !== none.activation && `${NAMES[disturbed.activation]} neurons, with weights made for ${NAMES[none.activation]}`,
  ].filter((text) => text);
  say("disturb-note", changes.length ? `${capital(changes.join("; "))}.` : "The network is whole.");
  const count = session.chosen.size;
  say("chosen-note", count ? `${count} of ${neurons}, ringed in the other views.` : "None. Drag over points, rows or weights to choose some.");
  for (const id of ["silence-chosen", "clear-chosen"]) get<HTMLButtonElement>(id).disabled = count === 0;
  const s = session.selectivity.channels.map((values) => plain(values[neuron]));
  const kind = session.signs ? (session.signs[neuron] > 0 ? ", excitatory" : ", inhibitory") : "";
  const active = session.network.active[neuron];
  say("tuning-note", `Neuron ${neuron + 1}${kind}: s = ${channels > 1 ? `(${s.join(", ")})` : s[0]}${active ? "" : ", silent"}. ${channels === 2 ? "Its activity over the plane of the integrals; the line is where they were." : "Dots: its activity in the last steps; line: f(s · ȳ)."}`);
  get("neuron-silence").textContent = active ? "Silence it" : "Wake it";
  if (document.activeElement !== get("neuron")) get<HTMLInputElement>("neuron").value = `${neuron + 1}`;
  say("spectrum-note", `${spectrumNote()}${disturbed.weights > 0 ? " Dashed: how far the noise reaches." : ""}`);
  if (learning) {
    const now = described.snapshots[session.stage];
    say("stage-value", `step ${now.step}, loss ${plain(now.loss)}`);
    get<HTMLInputElement>("stage").value = `${session.stage}`;
    get("stage").setAttribute("aria-valuetext", `training step ${now.step}`);
  }
}

function spectrumNote(): string {
  const values = session.stage === session.last ? described.spectrum : session.modes.values;
  const count = standingOut(values);
  if (!count) return "W is 0 yet.";
  const [here, next] = [values[count - 1], values[count] ?? 0];
  const gap = next > 1e-9 * here ? `σ${sub(count)} / σ${sub(count + 1)} = ${plain(here / next)}, the largest gap` : "there are no others";
  const why = count === channels ? ", as many as channels" : session.signs && count === channels + 1 ? ", one more than channels: Dale's law" : "";
  return `${count} ${count === 1 ? "stands" : "stand"} out${why}; ${gap}.`;
}

const sub = (number: number): string => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[Number(digit)]);

function tip(event: PointerEvent): void {
  const box = get("tip");
  box.hidden = session.hovered === null;
  if (session.hovered === null) return;
  box.textContent = `neuron ${session.hovered + 1}${session.network.active[session.hovered] ? "" : ", silent"}`;
  box.style.left = `${Math.min(event.clientX + 12, innerWidth - 130)}px`;
  box.style.top = `${event.clientY + 14}px`;
}

function captions(): void {
  const list = (values: number[]): string => values.map(plain).join(", ");
  const scaled = described.scales.some((s) => s !== 1) ? `, s = ${list(described.scales)}` : "";
  const damped = leak === 1 ? "" : `, leak ${plain(leak)}`;
  const dale = session.signs ? ", Dale's law" : "";
  say("subject", `${neurons} ${NAMES[described.activation.name]} neurons${dale} integrate ${channels} ${channels === 1 ? "signal" : "signals"}: γ = ${list(described.decays)}${scaled}${damped}. It runs in this page.`);
  const shape = channels === 1 ? "Line" : channels === 2 ? "Grid" : "Box";
  say("manifold-note", `Coordinates α of the currents along the leading singular vectors of W. ${shape}: where the integrals put them, one colour a channel. Drag, or use the arrow keys, to turn.`);
  const two = channels === 1 ? "Each neuron by its selectivity s and its decoder weight d." : "Each neuron i is the point sᵢ, for which hᵢ = f(sᵢ · ȳ).";
  say("selectivity-note", `${two} Hover for its tuning, click to silence it, drag to choose many.`);
  say("matrix-note", `W, its rows and columns sorted as the neurons above; each cell is a mean over a block. ${session.signs ? "Columns have one sign each: Dale's law. " : ""}Violet is positive, ochre negative.`);
  const labels = { manifold: "Current manifold", raster: "Activity of the neurons over time", selectivity: "Selectivity of each neuron", tuning: "Tuning of one neuron", matrix: "Recurrent weights as an image" };
  for (const [id, label] of Object.entries(labels)) get(id).setAttribute("aria-label", label);
}

// ---------------------------------------------------------------- controls

function play(on: boolean): void {
  playing = on;
  owed = 0;
  get("play").textContent = on ? "Pause" : "Play";
}

/** When time stands still, a change shows in the same steps run again. */
function changed(): void {
  if (!playing || session.ranAway) session.replay();
  legend();
  redraw();
}

function disturb(change: Partial<Disturbances>, redrawn = false): void {
  session.disturb(change, redrawn);
  settings();
  changed();
}

/** Show in the controls what the session has. */
function settings(): void {
  const { disturbed } = session;
  const set = (id: string, number: number, text: string): void => {
    get<HTMLInputElement>(id).value = `${number}`;
    say(`${id}-value`, text);
  };
  set("silenced", disturbed.silenced, percent(disturbed.silenced));
  set("weights", disturbed.weights, neurons > NOISY ? `up to ${NOISY} neurons` : percent(disturbed.weights));
  set("states", disturbed.states, percent(disturbed.states));
  const most = Math.min(session.modes.values.length, 24);
  const modes = get<HTMLInputElement>("modes");
  modes.max = `${most + (described.recurrent ? 1 : 0)}`;
  const count = disturbed.modes ?? Number(modes.max);
  set("modes", count, disturbed.modes === null ? "all" : `${count}`);
  get<HTMLSelectElement>("activation").value = disturbed.activation;
  set("size", session.size, plain(session.size));
  say("speed-value", `${SPEEDS[value("speed")]} steps/s`);
  for (const radio of document.querySelectorAll<HTMLInputElement>("input[name=kind]")) radio.checked = radio.value === session.kind;
}

function legend(): void {
  const entries: [string, string, string][] = [
    ["thick", colours.target, "integral ȳ"],
    ["", channel(colours, 0), "output y"],
    ...(session.silent > 0 ? [["dashed", colours.text, "predicted, γ (1 − p)"] as [string, string, string]] : []),
    ["", colours.target, "input x"],
  ];
  get("outputs-legend").replaceChildren(
    ...entries.map(([kind, colour, text]) => {
      const item = document.createElement("span");
      item.className = kind;
      item.textContent = text;
      item.style.setProperty("--mark", colour);
      return item;
    }),
  );
}

function drive(kind: Kind): void {
  session.drive(kind);
  settings();
}

function learn(stage: number): void {
  session.learn(stage);
  session.replay();
  settings();
  redraw();
}

function runThroughTraining(): void {
  if (running) clearInterval(running);
  const stop = (): void => {
    if (running) clearInterval(running);
    running = null;
    get("learn").textContent = "Run through training";
  };
  if (get("learn").textContent === "Stop") return stop();
  get("learn").textContent = "Stop";
  let stage = session.stage === session.last ? 0 : session.stage;
  running = setInterval(() => {
    learn(stage);
    if (stage++ === session.last) stop();
  }, 350);
}

function hands(): void {
  const keys = ["QA", "WS", "ED", "RF", "TG"];
  described.decays.forEach((_, c) => {
    const field = document.createElement("div");
    field.className = "field";
    const label = document.createElement("label");
    label.className = "swatch";
    label.style.setProperty("--mark", `var(--c${(c % 5) + 1})`);
    label.htmlFor = `hand-${c}`;
    label.textContent = `Push channel ${c + 1}`;
    const shown = document.createElement("output");
    shown.textContent = keys[c] ? keys[c].split("").join(" / ") : "";
    const slider = Object.assign(document.createElement("input"), { type: "range", id: `hand-${c}`, min: "-1", max: "1", step: "0.05", value: "0" });
    slider.addEventListener("input", () => (session.hand[c] = Number(slider.value)));
    // it springs back, as a hand that lets go
    const release = (): void => {
      slider.value = "0";
      session.hand[c] = 0;
    };
    for (const event of ["pointerup", "pointercancel", "change", "blur"]) slider.addEventListener(event, release);
    field.append(label, shown, slider);
    get("hands").append(field);
  });
  const push = (event: KeyboardEvent, size: number): boolean => {
    const c = keys.findIndex((pair) => pair.includes(event.key.toUpperCase()));
    if (c < 0 || c >= channels) return false;
    session.hand[c] = size * (keys[c][0] === event.key.toUpperCase() ? 1 : -1);
    get<HTMLInputElement>(`hand-${c}`).value = `${session.hand[c]}`;
    return true;
  };
  const free = (event: KeyboardEvent): boolean =>
    get<HTMLInputElement>("keys").checked && !event.ctrlKey && !event.metaKey && !event.altKey && !/^(select|textarea)$/i.test((event.target as HTMLElement).tagName) && (event.target as HTMLInputElement).type !== "number";
  addEventListener("keydown", (event) => {
    if (!free(event)) return;
    if (event.key === " " && !/^(button|input)$/i.test((event.target as HTMLElement).tagName)) {
      event.preventDefault();
      play(!playing);
    } else if (event.key === ".") step();
    else push(event, 1);
  });
  addEventListener("keyup", (event) => push(event, 0));
  addEventListener("blur", () => session.hand.fill(0));
}

function step(): void {
  play(false);
  session.step();
  redraw();
}

function options(id: string, entries: [string, string][], chosen: string): void {
  get<HTMLSelectElement>(id).replaceChildren(...entries.map(([key, text]) => new Option(text, key, false, key === chosen)));
}

function controls(): void {
  on("play", "click", () => play(!playing));
  on("step", "click", step);
  on("reset", "click", () => {
    session.reset();
    redraw();
  });
  on("speed", "input", () => {
    owed = 0;
    settings();
  });
  on("size", "input", () => {
    session.size = value("size");
    settings();
  });
  for (const radio of document.querySelectorAll<HTMLInputElement>("input[name=kind]")) {
    radio.addEventListener("change", () => drive(radio.value as Kind));
  }
  on("silenced", "input", () => disturb({ silenced: value("silenced") }));
  on("weights", "change", () => disturb({ weights: value("weights") }));
  on("weights", "input", () => say("weights-value", percent(value("weights"))));
  get<HTMLInputElement>("weights").disabled = neurons > NOISY;
  on("states", "input", () => disturb({ states: value("states") }));
  on("modes", "input", () => disturb({ modes: value("modes") === Number(get<HTMLInputElement>("modes").max) ? null : value("modes") }));
  on("activation", "change", () => disturb({ activation: get<HTMLSelectElement>("activation").value }));
  on("restore", "click", () => {
    session.restore();
    if (session.ranAway) session.replay();
    settings();
    changed();
  });
  on("redraw", "click", () => disturb({}, true));
  on("order", "change", () => {
    session.sort(get<HTMLSelectElement>("order").value as Order);
    redraw();
  });
  on("neuron", "input", () => {
    const number = value("neuron");
    if (number >= 1 && number <= neurons) neuron = Math.floor(number) - 1;
    session.hovered = neuron;
    redraw();
  });
  on("neuron", "blur", () => {
    session.hovered = null;
    redraw();
  });
  get<HTMLInputElement>("neuron").max = `${neurons}`;
  on("neuron-silence", "click", () => {
    session.toggle(neuron);
    changed();
  });
  on("silence-chosen", "click", () => {
    session.silenceChosen();
    changed();
  });
  on("clear-chosen", "click", () => {
    session.chosen.clear();
    redraw();
  });
  on("axis-x", "change", () => {
    points.x = value("axis-x");
    redraw();
  });
  on("axis-y", "change", () => {
    points.y = value("axis-y");
    redraw();
  });
  const orders: [string, string][] = [["population", "population"], ["stored", "number"]];
  if (channels > 1) orders.unshift(["angle", channels === 2 ? "angle of s" : "angle, channels 1, 2"]);
  if (session.signs) orders.unshift(["signs", "excitatory, inhibitory"]);
  options("order", orders, session.ordering);
  options("activation", Object.entries(NAMES).map(([key, text]) => [key, key === described.activation.name ? `${text} (its own)` : text]), described.activation.name);
  get("axes").hidden = channels < 3;
  const numbered = described.decays.map((_, c): [string, string] => [`${c}`, `channel ${c + 1}`]);
  options("axis-x", numbered, "0");
  options("axis-y", numbered, "1");
  if (learning) {
    const slider = get<HTMLInputElement>("stage");
    slider.max = `${session.last}`;
    slider.value = slider.max;
    slider.addEventListener("input", () => learn(Number(slider.value)));
    on("learn", "click", runThroughTraining);
  }
}

function tour(): void {
  const all = stops(session);
  let at = 0;
  const show = (): void => {
    const { title, text } = all[at];
    say("tour-count", `The paper in five minutes: ${at + 1} of ${all.length}`);
    say("tour-title", title);
    say("tour-text", text);
    get<HTMLButtonElement>("tour-back").disabled = at === 0;
    get<HTMLButtonElement>("tour-next").disabled = at === all.length - 1;
  };
  on("tour-back", "click", () => {
    at--;
    show();
  });
  on("tour-next", "click", () => {
    at++;
    show();
  });
  on("tour-try", "click", () => {
    const { set, look } = all[at];
    session.restore();
    session.disturb({ silenced: set.silenced ?? 0, modes: set.modes ?? null });
    if (!set.learn) session.reset();
    if (set.kind) drive(set.kind);
    settings();
    changed();
    play(true);
    get(look).scrollIntoView({ block: "nearest" });
    if (set.learn) runThroughTraining();
  });
  show();
}

captions();
controls();
hands();
settings();
tour();
legend();
play(playing);
for (const [id] of [...live, ...still]) watched.observe(get(id));
addEventListener("resize", redraw);
for (const begun = performance.now(); session.time < STEPS && performance.now() - begun < FIRST; ) session.step();
owed = STEPS - session.time;
for (let i = 1; i < neurons; i++) if (session.selectivity.channels[0][i] > session.selectivity.channels[0][neuron]) neuron = i;
requestAnimationFrame((now) => {
  last = now;
  frame(now);
});

/** For tests, and for whoever opens the console. */
Object.assign(window, {
  rni: {
    session,
    simulate: (inputs: number[][]) => simulate(described, inputs),
    frames: () => frames,
  },
});
