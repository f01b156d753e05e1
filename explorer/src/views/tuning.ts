/** The activity of one neuron as a function of the integrals, f(s_i . ybar + b_i), and as it was in the last steps. */

import { type Activation } from "../activation";
import type { Session } from "../session";
import { strength } from "../order";
import { channel, type Colours, css, rgb } from "../theme";
import { surface } from "./canvas";
import { neuronColour } from "./raster";

const CELLS = 48;

export class Tuning {
  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly session: Session,
    private readonly f: () => Activation,
    private colours: Colours,
  ) {}

  theme(colours: Colours): void {
    this.colours = colours;
  }

  draw(i: number): void {
    if (this.session.channels === 2) this.map(i);
    else this.curve(i);
  }

  /** D = 2: over the plane of the integrals, as in Fig 9B, with the trajectory on it. */
  private map(i: number): void {
    const { session, colours } = this;
    const { context: g, width, height } = surface(this.canvas);
    const [f, [s1, s2], b] = [this.f(), session.selectivity.channels.map((s) => s[i]), session.selectivity.offset[i]];
    const [e1, e2] = session.target.map((trace) => extent(trace.all));
    const side = Math.min(width - 60, height - 36);
    const [left, top] = [(width - side) / 2 + 14, 6];
    const values = new Float64Array(CELLS * CELLS);
    let most = 1e-12;
    for (let r = 0; r < CELLS; r++) {
      for (let c = 0; c < CELLS; c++) {
        const [u, v] = [(2 * (c + 0.5)) / CELLS - 1, 1 - (2 * (r + 0.5)) / CELLS];
        const value = f(s1 * u * e1 + s2 * v * e2 + b, i);
        values[r * CELLS + c] = value;
        most = Math.max(most, Math.abs(value));
      }
    }
    const [tint, paper, negative] = [neuronColour(session, colours, i), rgb(colours.card), rgb(colours.soft)];
    for (let at = 0; at < values.length; at++) {
      const part = Math.abs(values[at]) / most;
      const ink = values[at] < 0 ? negative : tint;
      g.fillStyle = css([0, 1, 2].map((k) => paper[k] + 0.85 * part * (ink[k] - paper[k])) as [number, number, number]);
      const [x, y] = [left + ((at % CELLS) * side) / CELLS, top + (Math.floor(at / CELLS) * side) / CELLS];
      g.fillRect(x, y, side / CELLS + 0.6, side / CELLS + 0.6);
    }
    g.strokeStyle = colours.target;
    g.lineWidth = 1;
    g.strokeRect(left, top, side, side);
    const [y1, y2] = session.target.map((trace) => trace.all);
    const px = (t: number): [number, number] => [left + (side * (1 + y1[t] / e1)) / 2, top + (side * (1 - y2[t] / e2)) / 2];
    g.strokeStyle = colours.text;
    g.globalAlpha = 0.35;
    g.beginPath();
    for (let t = 0; t < y1.length; t++) g.lineTo(...px(t));
    g.stroke();
    g.globalAlpha = 1;
    if (y1.length) {
      g.fillStyle = colours.text;
      g.beginPath();
      g.arc(...px(y1.length - 1), 3.5, 0, 2 * Math.PI);
      g.fill();
    }
    g.textAlign = "center";
    g.fillStyle = channel(colours, 0);
    g.fillText("integral ȳ of channel 1", left + side / 2, top + side + 14);
    g.save();
    g.translate(left - 14, top + side / 2);
    g.rotate(-Math.PI / 2);
    g.fillStyle = channel(colours, 1);
    g.fillText("integral ȳ of channel 2", 0, 0);
    g.restore();
  }

  /** Any other D: along the combination of integrals that the neuron codes. */
  private curve(i: number): void {
    const { session, colours } = this;
    const { context: g, width, height } = surface(this.canvas);
    const f = this.f();
    const [size, b] = [strength(session.selectivity, i) || 1e-12, session.selectivity.offset[i]];
    const direction = session.selectivity.channels.map((s) => s[i] / size);
    const steps = Math.min(session.activities.count, session.target[0].all.length);
    const along = Float64Array.from({ length: steps }, (_, ago) =>
      direction.reduce((sum, u, c) => sum + u * session.target[c].all[session.target[c].all.length - 1 - ago], 0),
    );
    const reach = extent(along);
    const curve = Array.from({ length: 161 }, (_, k) => {
      const u = (k / 80 - 1) * reach;
      return [u, f(size * u + b, i)];
    });
    const seen = Array.from(along, (u, ago) => [u, session.activities.at(ago)[i]]);
    const values = [...curve, ...seen].map(([, h]) => h).filter(Number.isFinite);
    const [low, high] = [Math.min(0, ...values), Math.max(1e-9, ...values)];
    const px = ([u, h]: number[]): [number, number] => [
      width / 2 + (u / reach) * (width / 2 - 12),
      height - 26 - ((h - low) / (high - low)) * (height - 46),
    ];
    g.strokeStyle = colours.line;
    g.lineWidth = 1;
    g.strokeRect(0, px([0, 0])[1], width, 0);
    g.strokeRect(width / 2, 8, 0, height - 30);
    g.fillStyle = css(neuronColour(session, colours, i));
    g.globalAlpha = 0.45;
    for (const point of seen) {
      g.beginPath();
      g.arc(...px(point), 2.2, 0, 2 * Math.PI);
      g.fill();
    }
    g.globalAlpha = 1;
    g.strokeStyle = colours.text;
    g.lineWidth = 1.5;
    g.beginPath();
    for (const point of curve) g.lineTo(...px(point));
    g.stroke();
    g.fillStyle = colours.soft;
    g.textAlign = "right";
    g.fillText(session.channels === 1 ? "integral ȳ" : "the combination of integrals that it codes", width - 4, height - 10);
    g.textAlign = "left";
    g.fillText("activity h", width / 2 + 6, 12);
  }
}

function extent(values: ArrayLike<number>): number {
  let most = 1e-3;
  for (let t = 0; t < values.length; t++) most = Math.max(most, Math.abs(values[t]));
  return 1.05 * most;
}
