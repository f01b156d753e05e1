/** Each neuron as the point s_i = (s_{i,1}, s_{i,2}); for one channel, its selectivity and its weight in the output. */

import { rows } from "../data";
import type { Session } from "../session";
import { type Colours, css } from "../theme";
import { gestures, type Point, surface } from "./canvas";
import { neuronColour } from "./raster";

const NEAR = 12; // pixels

export class Points {
  x = 0;
  y = 1;
  private readonly decoder: Float32Array;
  private box: [Point, Point] | null = null;
  private where = new Float64Array(0); // x and y of each neuron, in pixels
  private layer: HTMLCanvasElement | null = null;
  private drawn: unknown[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly session: Session,
    private colours: Colours,
    changed: (event?: PointerEvent) => void,
  ) {
    this.decoder = rows(session.described.decoders, session.neurons)[0];
    gestures(canvas, {
      hover: (at, event) => {
        session.hovered = at && this.nearest(at);
        changed(event);
      },
      click: (at) => {
        const i = this.nearest(at);
        if (i !== null) session.toggle(i);
        changed();
      },
      drag: (from, to, done) => {
        this.box = done ? null : [from, to];
        if (done) this.choose(from, to);
        changed();
      },
    });
  }

  theme(colours: Colours): void {
    this.colours = colours;
    this.layer = null;
  }

  get labels(): [string, string] {
    return this.session.channels === 1 ? ["s, its selectivity", "d, its weight in the output"] : [`s for channel ${this.x + 1}`, `s for channel ${this.y + 1}`];
  }

  draw(): void {
    const { session, colours } = this;
    const { context: g, width, height } = surface(this.canvas);
    // thousands of points are drawn once, and again only when they change
    const version = [width, height, this.x, this.y, session.modes, this.colours, session.silent];
    if (!this.layer || version.some((part, k) => part !== this.drawn[k])) {
      this.drawn = version;
      this.points(width, height);
    }
    g.drawImage(this.layer!, 0, 0, width, height);
    const ring = (i: number, size: number, line: number): void => {
      g.lineWidth = line;
      g.beginPath();
      g.arc(this.where[2 * i], this.where[2 * i + 1], size, 0, 2 * Math.PI);
      g.stroke();
    };
    g.strokeStyle = colours.text;
    for (const i of session.chosen) ring(i, 4, 1.2);
    if (session.hovered !== null) ring(session.hovered, 6, 2);
    if (this.box) {
      const [a, b] = this.box;
      g.setLineDash([4, 3]);
      g.lineWidth = 1;
      g.strokeRect(a.x, a.y, b.x - a.x, b.y - a.y);
      g.setLineDash([]);
    }
  }

  private points(width: number, height: number): void {
    const { session, colours } = this;
    const ratio = devicePixelRatio || 1;
    this.layer = document.createElement("canvas");
    Object.assign(this.layer, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    const g = this.layer.getContext("2d")!;
    g.scale(ratio, ratio);
    const s = session.selectivity.channels;
    const [xs, ys]: (Float64Array | Float32Array)[] = session.channels === 1 ? [s[0], this.decoder] : [s[this.x], s[this.y]];
    const equal = session.channels > 1;
    const reach = [xs, ys].map(extent);
    const inside = (at: number, size: number): number => Math.max(4, Math.min(size - 4, at));
    const half = equal ? [Math.max(...reach), Math.max(...reach)] : reach;
    const pixels = [width / 2 - 14, height / 2 - 14];
    const zoom = equal ? [0, 1].map(() => Math.min(...pixels) / half[0]) : pixels.map((p, k) => p / half[k]);
    g.strokeStyle = colours.line;
    g.strokeRect(width / 2, 0, 0, height);
    g.strokeRect(0, height / 2, width, 0);
    g.fillStyle = colours.soft;
    g.font = `12px ${getComputedStyle(this.canvas).fontFamily}`;
    const [x, y] = this.labels;
    g.textAlign = "right";
    g.fillText(x, width - 2, height / 2 - 6);
    g.textAlign = "left";
    g.fillText(y, width / 2 + 6, 11);
    this.where = new Float64Array(2 * session.neurons);
    const radius = session.neurons > 3000 ? 1.3 : session.neurons > 600 ? 2 : 2.6;
    for (let i = 0; i < session.neurons; i++) {
      const [px, py] = [inside(width / 2 + zoom[0] * xs[i], width), inside(height / 2 - zoom[1] * ys[i], height)];
      this.where.set([px, py], 2 * i);
      g.beginPath();
      if (session.network.active[i]) {
        g.globalAlpha = 0.8;
        g.fillStyle = css(neuronColour(session, colours, i));
        g.arc(px, py, radius, 0, 2 * Math.PI);
        g.fill();
      } else {
        g.globalAlpha = 0.9;
        g.strokeStyle = colours.silent;
        g.moveTo(px - radius, py - radius);
        g.lineTo(px + radius, py + radius);
        g.moveTo(px + radius, py - radius);
        g.lineTo(px - radius, py + radius);
        g.stroke();
      }
    }
  }

  private nearest(at: Point): number | null {
    let [best, least] = [null as number | null, NEAR];
    for (let i = 0; i < this.session.neurons; i++) {
      const distance = Math.hypot(this.where[2 * i] - at.x, this.where[2 * i + 1] - at.y);
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  private choose(a: Point, b: Point): void {
    const { session, where } = this;
    const inside = (v: number, p: number, q: number): boolean => v >= Math.min(p, q) && v <= Math.max(p, q);
    session.chosen.clear();
    for (let i = 0; i < session.neurons; i++) {
      if (inside(where[2 * i], a.x, b.x) && inside(where[2 * i + 1], a.y, b.y)) session.chosen.add(i);
    }
  }
}

/** The size of all but the largest few, which are drawn at the rim. */
function extent(values: Float64Array | Float32Array): number {
  const sizes = Float64Array.from(values, Math.abs).sort();
  return Math.min(sizes[sizes.length - 1], 1.5 * sizes[Math.floor(0.98 * (sizes.length - 1))]) || 1e-12;
}
