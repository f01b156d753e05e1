/** Outputs against integrals, one panel a channel, scrolling by. */

import uPlot from "uplot";
import type { Session } from "../session";
import { STEPS } from "../session";
import { channel, type Colours } from "../theme";

const SHOWN = 6; // channels

export class Outputs {
  private plots: uPlot[] = [];
  private readonly limits: number[];
  private readonly sizes: number[]; // of the inputs, which lie along the foot of the panel

  constructor(
    private readonly root: HTMLElement,
    private readonly session: Session,
    private colours: Colours,
  ) {
    this.limits = session.described.decays.map(() => 0);
    this.sizes = session.described.decays.map(() => 1);
    new ResizeObserver(() => this.resize()).observe(root);
    this.theme(colours);
  }

  theme(colours: Colours): void {
    this.colours = colours;
    for (const plot of this.plots) plot.destroy();
    const count = Math.min(this.session.channels, SHOWN);
    this.plots = Array.from({ length: count }, (_, c) => this.plot(c, c === count - 1));
  }

  draw(): void {
    const { session } = this;
    const predicting = session.silent > 0;
    this.plots.forEach((plot, c) => {
      const [y, target, predicted] = [session.output[c].all, session.target[c].all, session.predicted[c].all];
      const start = session.time - y.length;
      const times = Float64Array.from(y, (_, t) => start + t);
      this.limits[c] = limit(this.limits[c], target, y);
      const inputs = session.input[c].all;
      this.sizes[c] = Math.max(limit(this.sizes[c], inputs, inputs), 0.5);
      const before = predicting ? y.length - session.since : y.length;
      plot.setData([times, inputs, target, y, Array.from(predicted, (value, t) => (t < before ? null : value))]);
    });
  }

  private plot(c: number, lowest: boolean): uPlot {
    const { colours } = this;
    const colour = channel(colours, c);
    const axis = { stroke: colours.soft, font: "11px Inter, system-ui, sans-serif", ticks: { show: false }, gap: 4 };
    const grid = { stroke: colours.line, width: 1 };
    const options: uPlot.Options = {
      ...this.dimensions(c),
      cursor: { show: false },
      legend: { show: false },
      padding: [8, 8, 0, 0],
      scales: {
        x: { time: false, range: () => [this.session.time - STEPS, Math.max(this.session.time - 1, STEPS / 100)] },
        y: { range: () => [-this.limits[c], this.limits[c]] },
        in: { range: () => [-this.sizes[c], 9 * this.sizes[c]] },
      },
      axes: [
        { ...axis, grid, size: lowest ? 20 : 8, label: lowest ? "time step t" : undefined, labelSize: 14, labelGap: 0, labelFont: axis.font, values: (_plot, ticks) => ticks.map((t) => (lowest && t >= 0 ? `${t}` : "")) },
        { ...axis, grid, stroke: colour, size: 44, label: `channel ${c + 1}`, labelSize: 18, labelFont: `600 ${axis.font}`, space: 22 },
      ],
      series: [
        {},
        { scale: "in", stroke: colours.soft, width: 0.9, points: { show: false } },
        { stroke: colours.target, width: 5, points: { show: false } },
        { stroke: colour, width: 1.75, points: { show: false } },
        { stroke: colours.text, width: 1.25, dash: [5, 4], points: { show: false } },
      ],
    };
    return new uPlot(options, [[], [], [], [], []], this.root);
  }

  private dimensions(c: number): { width: number; height: number } {
    const count = Math.min(this.session.channels, SHOWN);
    const height = count === 1 ? 220 : count === 2 ? 145 : 108;
    return { width: Math.max(this.root.clientWidth, 200), height: height + (c === count - 1 ? 26 : 0) };
  }

  private resize(): void {
    this.plots.forEach((plot, c) => plot.setSize(this.dimensions(c)));
  }
}

/** The largest value to show: grows at once, shrinks slowly, and outputs beyond three times the integrals are cut off. */
export function limit(before: number, target: ArrayLike<number>, y: ArrayLike<number>): number {
  const most = (values: ArrayLike<number>): number => {
    let found = 0;
    for (let t = 0; t < values.length; t++) found = Math.max(found, Math.abs(values[t]) || 0);
    return found;
  };
  const goal = Math.max(most(target), 1e-3);
  const wanted = 1.12 * Math.max(goal, Math.min(most(y), 3 * goal));
  return wanted > before ? wanted : before + 0.03 * (wanted - before);
}
