/** W, ordered as the neurons are: means over blocks of it. */

import type { Session } from "../session";
import { type Colours, rgb } from "../theme";
import type { Weights } from "../weights";
import { gestures, type Point, surface } from "./canvas";
import { choose } from "./raster";

const BINS = 150;

export class Matrix {
  private image: HTMLCanvasElement | null = null;
  private made: [Weights, Uint32Array, Colours] | null = null;
  private band: [number, number] | null = null;
  private side = 1;
  private left = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly session: Session,
    private colours: Colours,
    changed: (event?: PointerEvent) => void,
  ) {
    gestures(canvas, {
      hover: (at, event) => {
        session.hovered = at && this.inside(at) ? session.order[this.rank(at.y)] : null;
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
    const { weights } = session.network;
    const made = this.made;
    if (!made || made[0] !== weights || made[1] !== session.order || made[2] !== colours) {
      this.made = [weights, session.order, colours];
      this.image = this.paint(weights);
    }
    this.side = Math.min(width - 30, height - 22);
    this.left = (width - this.side) / 2 + 8;
    g.imageSmoothingEnabled = false;
    g.drawImage(this.image!, this.left, 0, this.side, this.side);
    g.strokeStyle = colours.line;
    g.strokeRect(this.left, 0, this.side, this.side);
    const { neurons, rank } = session;
    const thick = Math.max(1, this.side / neurons);
    const mark = (r: number, colour: string, at: number): void => {
      g.fillStyle = colour;
      g.fillRect(this.left - at, (r / neurons) * this.side, 3, thick);
    };
    session.network.active.forEach((active, i) => active || mark(rank[i], colours.silent, 5));
    for (const i of session.chosen) mark(rank[i], colours.text, 9);
    g.fillStyle = colours.text;
    if (session.hovered !== null) {
      const at = (rank[session.hovered] / neurons) * this.side;
      g.globalAlpha = 0.6;
      g.fillRect(this.left, at, this.side, 1);
      g.fillRect(this.left + at, 0, 1, this.side);
    }
    if (this.band) {
      const [first, last] = this.band.map((r) => (r / neurons) * this.side);
      g.globalAlpha = 0.12;
      g.fillRect(this.left, first, this.side, last - first);
    }
    g.globalAlpha = 1;
    g.fillStyle = colours.soft;
    g.textAlign = "center";
    g.fillText("from neuron j", this.left + this.side / 2, this.side + 12);
    g.save();
    g.translate(this.left - 18, this.side / 2);
    g.rotate(-Math.PI / 2);
    g.fillText("to neuron i", 0, 0);
    g.restore();
  }

  private paint(weights: Weights): HTMLCanvasElement {
    const bins = Math.min(BINS, weights.neurons);
    const values = weights.blocks(this.session.order, bins);
    const sizes = Float64Array.from(values, Math.abs).sort();
    const most = sizes[Math.floor(0.98 * (sizes.length - 1))] || 1;
    const [paper, plus, minus] = [this.colours.card, this.colours.plus, this.colours.minus].map(rgb);
    const pixels = new ImageData(bins, bins);
    values.forEach((value, at) => {
      const part = Math.min(1, Math.abs(value) / most);
      const ink = value > 0 ? plus : minus;
      for (let k = 0; k < 3; k++) pixels.data[4 * at + k] = paper[k] + part * (ink[k] - paper[k]);
      pixels.data[4 * at + 3] = 255;
    });
    const image = document.createElement("canvas");
    Object.assign(image, { width: bins, height: bins });
    image.getContext("2d")!.putImageData(pixels, 0, 0);
    return image;
  }

  private inside(at: Point): boolean {
    return at.x >= this.left && at.x <= this.left + this.side && at.y >= 0 && at.y < this.side;
  }

  private rank(y: number): number {
    const { neurons } = this.session;
    return Math.max(0, Math.min(neurons - 1, Math.floor((y / this.side) * neurons)));
  }
}
