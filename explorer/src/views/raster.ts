/** Activities of the neurons over time, one row each, in a chosen order. */

import type { Session } from "../session";
import { STEPS } from "../session";
import { type Colours, mixed, type RGB, rgb } from "../theme";
import { gestures, surface } from "./canvas";

export class Raster {
  private readonly image = document.createElement("canvas");
  private scale = 1;
  private power = Infinity; // of the scale
  private shown = new Uint32Array(0); // neurons, by row
  private tints: RGB[] = [];
  private painted: unknown[] = [];
  private seen = 0; // steps
  private band: [number, number] | null = null;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly session: Session,
    private colours: Colours,
    changed: (event?: PointerEvent) => void,
  ) {
    gestures(canvas, {
      hover: (at, event) => {
        session.hovered = at ? this.neuron(at.y) : null;
        changed(event);
      },
      drag: (from, to, done) => {
        const ranks = [from.y, to.y].map((y) => this.rank(y)).sort((a, b) => a - b) as [number, number];
        this.band = done ? null : ranks;
        if (done) choose(session, ranks);
        changed();
      },
    });
  }

  theme(colours: Colours): void {
    this.colours = colours;
  }

  draw(): void {
    const { session, colours } = this;
    const { context: g, width, height } = surface(this.canvas);
    const rows = Math.min(session.neurons, Math.floor(height));
    this.paint(rows, Math.min(STEPS, session.activities.length));
    g.imageSmoothingEnabled = false;
    g.drawImage(this.image, 0, 0, width - MARGIN, height);
    const at = (rank: number): number => (rank / session.neurons) * height;
    this.shown.forEach((i, row) => {
      const mark = (colour: string, x: number): void => {
        g.fillStyle = colour;
        g.fillRect(width - x, (row / rows) * height, 4, height / rows);
      };
      if (!session.network.active[i]) mark(colours.silent, MARGIN - 3);
      if (session.chosen.has(i)) mark(colours.text, MARGIN - 9);
      if (session.signs) mark(session.signs[i] > 0 ? colours.plus : colours.minus, 4);
    });
    g.fillStyle = colours.text;
    if (session.hovered !== null) g.fillRect(0, at(session.rank[session.hovered]), width, 1);
    if (this.band) {
      const [first, last] = this.band.map(at);
      g.globalAlpha = 0.12;
      g.fillRect(0, first, width, last - first);
      g.globalAlpha = 1;
    }
  }

  /** Move the image on by the new steps and paint only those; all of it where more than time has changed. */
  private paint(rows: number, columns: number): void {
    const { activities, order, neurons } = this.session;
    const version = [rows, columns, order, this.colours, activities.cleared, this.scale];
    const same = version.every((part, k) => part === this.painted[k]);
    const fresh = same ? Math.min(activities.total - this.seen, columns) : columns;
    const g = this.image.getContext("2d")!;
    if (!same) {
      Object.assign(this.image, { width: columns, height: rows });
      this.shown = Uint32Array.from({ length: rows }, (_, r) => order[Math.floor(((r + 0.5) * neurons) / rows)]);
      this.tints = Array.from(this.shown, (i) => neuronColour(this.session, this.colours, i));
    } else if (fresh) {
      g.globalCompositeOperation = "copy";
      g.drawImage(this.image, -fresh, 0);
      g.globalCompositeOperation = "source-over";
    }
    if (fresh) g.putImageData(this.columns(fresh), columns - fresh, 0);
    this.seen = activities.total;
    this.painted = version;
    this.rescale();
  }

  /** The last steps, one column each. */
  private columns(count: number): ImageData {
    const { activities } = this.session;
    const [paper, negative] = [rgb(this.colours.card), rgb(this.colours.soft)];
    const rows = this.shown.length;
    const pixels = new ImageData(count, rows);
    for (let x = 0; x < count; x++) {
      const ago = count - 1 - x;
      if (ago >= activities.count) continue;
      const h = activities.at(ago);
      for (let r = 0; r < rows; r++) {
        const value = h[this.shown[r]];
        const part = Math.min(1, Math.sqrt(Math.abs(value) / this.scale));
        const tint = value < 0 ? negative : this.tints[r];
        const at = 4 * (r * count + x);
        for (let k = 0; k < 3; k++) pixels.data[at + k] = paper[k] + part * (tint[k] - paper[k]);
        pixels.data[at + 3] = 255;
      }
    }
    return pixels;
  }

  /** The activity of the full colour, a power of 1.5, so that it seldom changes: a part of the largest in sight. */
  private rescale(): void {
    const { activities } = this.session;
    let most = 0;
    for (let ago = 0; ago < activities.count; ago += 8) {
      const h = activities.at(ago);
      for (const i of this.shown) if (Math.abs(h[i]) > most) most = Math.abs(h[i]);
    }
    const power = Math.log(0.6 * most) / Math.log(1.5);
    if (most > 0 && Number.isFinite(power) && Math.abs(power - this.power) > 0.8) {
      this.power = Math.round(power);
      this.scale = 1.5 ** this.power;
    }
  }

  private rank(y: number): number {
    const { neurons } = this.session;
    return Math.max(0, Math.min(neurons - 1, Math.floor((y / this.canvas.clientHeight) * neurons)));
  }

  private neuron(y: number): number {
    return this.session.order[this.rank(y)];
  }
}

const MARGIN = 18; // for the marks of silent and chosen neurons

export function choose(session: Session, [first, last]: [number, number]): void {
  session.chosen.clear();
  for (let rank = first; rank <= last; rank++) session.chosen.add(session.order[rank]);
}

/** The colours of the channels that a neuron codes, mixed. */
export function neuronColour(session: Session, colours: Colours, i: number): RGB {
  const parts = session.selectivity.channels.map((s) => s[i] ** 2);
  return mixed(parts, colours.channels.map(rgb));
}
