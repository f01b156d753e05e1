/** Activities of the neurons over time, one row each, in a chosen order. */

import type { Session } from "../session";
import { STEPS } from "../session";
import { type Colours, mixed, type RGB, rgb } from "../theme";
import { gestures, surface } from "./canvas";

export class Raster {
  private readonly image = document.createElement("canvas");
  private scale = 0;
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
    const { activities, order, network } = session;
    const columns = Math.min(STEPS, activities.length);
    if (this.image.width !== columns || this.image.height !== rows) Object.assign(this.image, { width: columns, height: rows });
    const shown = Uint32Array.from({ length: rows }, (_, r) => order[Math.floor(((r + 0.5) * session.neurons) / rows)]);
    const tints = Array.from(shown, (i) => neuronColour(session, colours, i));
    const [paper, negative] = [rgb(colours.card), rgb(colours.soft)];
    const pixels = new ImageData(columns, rows);
    const { data } = pixels;
    let most = 0;
    for (let x = 0; x < columns; x++) {
      const ago = columns - 1 - x;
      const known = ago < activities.count;
      const h = known ? activities.at(ago) : null;
      for (let r = 0; r < rows; r++) {
        const value = h ? h[shown[r]] : 0;
        if (Math.abs(value) > most) most = Math.abs(value);
        const part = Math.min(1, Math.sqrt(Math.abs(value) / (this.scale || 1)));
        const tint = value < 0 ? negative : tints[r];
        const at = 4 * (r * columns + x);
        for (let k = 0; k < 3; k++) data[at + k] = paper[k] + part * (tint[k] - paper[k]);
        data[at + 3] = 255;
      }
    }
    const goal = Number.isFinite(most) ? 0.7 * most : this.scale;
    this.scale = this.scale === 0 || goal > 2 * this.scale ? goal : this.scale + 0.1 * (goal - this.scale);
    this.image.getContext("2d")!.putImageData(pixels, 0, 0);
    g.imageSmoothingEnabled = false;
    g.drawImage(this.image, 0, 0, width - MARGIN, height);
    const mark = (rank: number, colour: string, x: number, size: number): void => {
      g.fillStyle = colour;
      g.fillRect(x, (rank / session.neurons) * height, size, Math.max(1, height / session.neurons));
    };
    for (let i = 0; i < session.neurons; i++) if (!network.active[i]) mark(session.rank[i], colours.silent, width - MARGIN + 3, 4);
    for (const i of session.chosen) mark(session.rank[i], colours.text, width - MARGIN + 9, 4);
    if (session.signs) {
      for (let i = 0; i < session.neurons; i++) mark(session.rank[i], session.signs[i] > 0 ? colours.plus : colours.minus, width - 4, 4);
    }
    if (session.hovered !== null) mark(session.rank[session.hovered], colours.text, 0, width);
    if (this.band) {
      const [first, last] = this.band.map((rank) => (rank / session.neurons) * height);
      g.fillStyle = colours.text;
      g.globalAlpha = 0.12;
      g.fillRect(0, first, width, last - first);
      g.globalAlpha = 1;
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
