/** Singular values of W, and the losses of its training. */

import uPlot from "uplot";
import type { Session } from "../session";
import type { Colours } from "../theme";

const [FEWEST, MOST] = [10, 30]; // values shown
const FONT = "11px Inter, system-ui, sans-serif";

/** Ticks of a logarithmic axis; null for those that have no room. */
const powers = (_plot: uPlot, ticks: (number | null)[]): string[] =>
  ticks.map((tick) => (tick === null ? "" : tick >= 0.01 && tick <= 1000 ? `${tick}` : tick.toExponential(0)));

/** A small chart that follows the size of its place. */
abstract class Chart {
  protected plot: uPlot;

  constructor(
    protected readonly root: HTMLElement,
    protected readonly session: Session,
    protected colours: Colours,
  ) {
    this.plot = new uPlot(this.options(), this.data(), root);
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(root);
  }

  theme(colours: Colours): void {
    this.colours = colours;
    this.plot.destroy();
    this.plot = new uPlot(this.options(), this.data(), this.root);
  }

  draw(): void {
    this.plot.setData(this.data());
  }

  protected abstract options(): uPlot.Options;
  protected abstract data(): uPlot.AlignedData;

  protected size(): { width: number; height: number } {
    return { width: Math.max(this.root.clientWidth, 160), height: Math.max(this.root.clientHeight, 100) };
  }

  protected axes(x: string, y: string): uPlot.Axis[] {
    const { soft, line } = this.colours;
    const axis = { stroke: soft, font: FONT, labelFont: FONT, ticks: { show: false }, grid: { stroke: line, width: 1 } };
    return [
      { ...axis, label: x, size: 26, labelSize: 18 },
      { ...axis, label: y, size: 56, labelSize: 18 },
    ];
  }

  protected dots(colour: string, size: number): uPlot.Series {
    return { paths: () => null, points: { show: true, size, stroke: colour, fill: colour } };
  }
}

export class Spectrum extends Chart {
  protected options(): uPlot.Options {
    const { colours } = this;
    return {
      ...this.size(),
      cursor: { show: false },
      legend: { show: false },
      scales: { x: { time: false, range: () => [0, this.count + 1] }, y: { range: (_u, _min, max) => [0, 1.08 * (max || 1)] } },
      axes: this.axes("k", "σ of mode k").map((axis, k) => (k ? axis : { ...axis, incrs: [1, 2, 5, 10] })),
      series: [
        {},
        this.dots(colours.accent, 8),
        this.dots(colours.target, 6),
        { stroke: colours.minus, width: 1.5, dash: [5, 4], points: { show: false } },
      ],
    };
  }

  private get count(): number {
    const { spectrum, neurons } = this.session.described;
    return Math.min(MOST, neurons, Math.max(spectrum.length, FEWEST));
  }

  protected data(): uPlot.AlignedData {
    const { session } = this;
    const values = session.stage === session.last ? session.described.spectrum : session.modes.values;
    const kept = session.disturbed.modes ?? Infinity;
    const ranks = Array.from({ length: this.count }, (_, k) => k + 1);
    const level = session.disturbed.weights;
    // the largest singular value of noise with n x n entries of size e is 2 e sqrt(n)
    const edge = (2 * level * Math.hypot(...values.slice(0, kept === Infinity ? undefined : kept))) / Math.sqrt(session.neurons);
    return [
      ranks,
      ranks.map((k) => (k <= kept ? (values[k - 1] ?? 0) : null)),
      ranks.map((k) => (k > kept ? (values[k - 1] ?? 0) : null)),
      ranks.map(() => (level > 0 ? edge : null)),
    ];
  }
}

export class Losses extends Chart {
  protected options(): uPlot.Options {
    const { colours } = this;
    return {
      ...this.size(),
      cursor: { show: false },
      legend: { show: false },
      scales: { x: { time: false }, y: { distr: 3 } },
      axes: this.axes("training step", "loss").map((axis, k) => (k ? { ...axis, grid: { show: false }, values: powers } : axis)),
      series: [{}, { stroke: colours.target, width: 1.5, points: { show: false } }, this.dots(colours.accent, 10)],
    };
  }

  protected data(): uPlot.AlignedData {
    const { snapshots, losses } = this.session.described;
    const known = losses.length ? losses : snapshots.map((s): [number, number] => [s.step, s.loss]);
    const now = snapshots[this.session.stage];
    const all = [...known.map(([step, loss]) => [step, loss, null]), ...(now ? [[now.step, null, now.loss]] : [])];
    all.sort((a, b) => a[0]! - b[0]!);
    const column = (k: number): (number | null)[] => all.map((row) => row[k]);
    return [column(0) as number[], this.interpolated(column(1)), column(2)];
  }

  /** The line goes on through the step of the dot, which has no loss of its own in it. */
  private interpolated(values: (number | null)[]): (number | null)[] {
    return values.map((value, k) => value ?? values[k - 1] ?? values[k + 1] ?? null);
  }
}
