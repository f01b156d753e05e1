/** The current manifold: coordinates alpha_k = l_k . nu, and the plane alpha = R ybar + alpha0 of the integrals. */

import type { Session } from "../session";
import { channel, type Colours } from "../theme";
import { gestures, surface } from "./canvas";

type Vector = [number, number, number];

const NAMES = ["α₁", "α₂", "α₃"];
const LINES = 4; // of the grid, to either side

export class Manifold {
  private turn: number;
  private tilt: number;
  private extent: number[];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly session: Session,
    private colours: Colours,
    private readonly changed: () => void,
  ) {
    const flat = session.channels === 1;
    [this.turn, this.tilt] = flat ? [0, Math.PI / 2] : session.channels === 2 ? [0.5, 0.6] : [0.5, 0.35];
    this.extent = session.described.decays.map(() => 0);
    let [turn, tilt] = [0, 0];
    canvas.addEventListener("pointerdown", () => ([turn, tilt] = [this.turn, this.tilt]));
    gestures(canvas, {
      drag: (from, to) => this.rotate(turn + (to.x - from.x) / 120, tilt + (to.y - from.y) / 120),
    });
    canvas.addEventListener("keydown", (event) => {
      const turns: Record<string, [number, number]> = {
        ArrowLeft: [-0.12, 0], ArrowRight: [0.12, 0], ArrowUp: [0, -0.12], ArrowDown: [0, 0.12],
      };
      const by = turns[event.key];
      if (!by) return;
      event.preventDefault();
      this.rotate(this.turn + by[0], this.tilt + by[1]);
    });
  }

  theme(colours: Colours): void {
    this.colours = colours;
  }

  private rotate(turn: number, tilt: number): void {
    this.turn = turn;
    this.tilt = Math.max(-Math.PI / 2, Math.min(Math.PI / 2, tilt));
    this.changed();
  }

  draw(): void {
    const { session, colours } = this;
    const { context: g, width, height } = surface(this.canvas);
    this.extent = this.extent.map((before, c) => reach(before, session.target[c].all));
    const corners = this.corners();
    const size = Math.max(...corners.map((v) => Math.hypot(...v)), 1e-6);
    const [ct, st, cp, sp] = [Math.cos(this.turn), Math.sin(this.turn), Math.cos(this.tilt), Math.sin(this.tilt)];
    const turned = (v: Vector): [number, number] => {
      // α₁ to the right, α₂ to the back, α₃ up
      const [x, depth] = [ct * v[0] - st * v[1], st * v[0] + ct * v[1]];
      return [x, cp * v[2] + sp * depth];
    };
    const flat = corners.map(turned);
    const most = (k: 0 | 1): number => Math.max(...flat.map((point) => Math.abs(point[k])), 0.4 * size);
    const zoom = Math.min((0.46 * width) / most(0), (0.46 * height) / most(1));
    const to = (v: Vector): [number, number] => {
      const [x, y] = turned(v);
      return [width / 2 + zoom * x, height / 2 - zoom * y];
    };
    const line = (a: Vector, b: Vector): void => {
      g.beginPath();
      g.moveTo(...to(a));
      g.lineTo(...to(b));
      g.stroke();
    };
    this.axes(g, line, to, 0.62 * size);
    this.plane(g, line);
    this.trajectory(g, to);
    const [alpha, wanted] = [session.coordinates.map((t) => t.last) as Vector, this.image(session.target.map((t) => t.last))];
    g.lineWidth = 2;
    g.strokeStyle = colours.soft;
    g.beginPath();
    g.arc(...to(wanted), 6, 0, 2 * Math.PI);
    g.stroke();
    g.fillStyle = colours.text;
    g.beginPath();
    g.arc(...to(alpha), 3.5, 0, 2 * Math.PI);
    g.fill();
  }

  /** alpha = R ybar + alpha0, of the first three modes. */
  private image(y: number[]): Vector {
    const { map, offset } = this.session.modes;
    return [0, 1, 2].map((k) => (map[k] ?? []).reduce((sum, r, c) => sum + r * y[c], offset[k] ?? 0)) as Vector;
  }

  private corners(): Vector[] {
    const few = Math.min(this.session.channels, 3);
    return Array.from({ length: 2 ** few }, (_, bits) =>
      this.image(this.extent.map((e, c) => (c < few ? ((bits >> c) & 1 ? e : -e) : 0))),
    );
  }

  private axes(g: CanvasRenderingContext2D, line: (a: Vector, b: Vector) => void, to: (v: Vector) => [number, number], size: number): void {
    g.lineWidth = 1;
    g.strokeStyle = this.colours.line;
    g.fillStyle = this.colours.soft;
    g.textAlign = "center";
    NAMES.forEach((name, k) => {
      const end = [0, 1, 2].map((a) => (a === k ? size : 0)) as Vector;
      line(end.map((v) => -v) as Vector, end);
      const [x, y] = to(end.map((v) => 1.08 * v) as Vector);
      const [ox, oy] = to([0, 0, 0]);
      if (Math.hypot(x - ox, y - oy) > 20) g.fillText(name, x, y + (Math.abs(y - oy) < 4 ? 12 : 0));
    });
  }

  /** Lines along which one integral changes, in the colour of its channel; for three channels, the edges of the box. */
  private plane(g: CanvasRenderingContext2D, line: (a: Vector, b: Vector) => void): void {
    const { extent, colours } = this;
    const { channels } = this.session;
    const few = Math.min(channels, 3);
    g.lineWidth = 1;
    for (let c = 0; c < few; c++) {
      const others = Array.from({ length: few }, (_, k) => k).filter((k) => k !== c);
      const levels = few === 3 ? [-1, 1] : Array.from({ length: 2 * LINES + 1 }, (_, k) => k / LINES - 1);
      const fixed: number[][] = others.length === 0 ? [[]] : others.length === 1 ? levels.map((a) => [a]) : levels.flatMap((a) => levels.map((b) => [a, b]));
      g.strokeStyle = channel(colours, c);
      for (const values of fixed) {
        g.globalAlpha = few === 1 || (values.length === 1 && values[0] === 0) ? 0.9 : 0.4;
        const at = (sign: number): Vector =>
          this.image(extent.map((e, k) => (k === c ? sign * e : k < few ? (values[others.indexOf(k)] ?? 0) * e : 0)));
        line(at(-1), at(1));
      }
    }
    g.globalAlpha = 1;
  }

  private trajectory(g: CanvasRenderingContext2D, to: (v: Vector) => [number, number]): void {
    const [a, b, c] = this.session.coordinates.map((trace) => trace.all);
    const pieces = 8;
    g.strokeStyle = this.colours.text;
    g.lineWidth = 1.2;
    for (let piece = 0; piece < pieces; piece++) {
      const [from, till] = [piece, piece + 1].map((k) => Math.round((k * (a.length - 1)) / pieces));
      g.globalAlpha = 0.08 + 0.82 * ((piece + 1) / pieces) ** 3;
      g.beginPath();
      for (let t = Math.max(from, 0); t <= till; t++) g.lineTo(...to([a[t], b[t], c[t]]));
      g.stroke();
    }
    g.globalAlpha = 1;
  }
}

/** The size of an integral: grows at once, shrinks slowly. */
function reach(before: number, values: ArrayLike<number>): number {
  let most = 1e-3;
  for (let t = 0; t < values.length; t++) most = Math.max(most, Math.abs(values[t]));
  return most > before ? most : before + 0.02 * (most - before);
}
