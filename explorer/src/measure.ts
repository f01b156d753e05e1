/** How well it integrates, and what to expect when neurons are silent. */

/** sqrt(<(y - ybar)^2> / <ybar^2>). */
export function relativeError(y: ArrayLike<number>, target: ArrayLike<number>): number {
  let [error, size] = [0, 0];
  for (let t = 0; t < y.length; t++) {
    error += (y[t] - target[t]) ** 2;
    size += target[t] ** 2;
  }
  return Math.sqrt(error / size);
}

/** gamma of y_t = gamma (y_{t-1} + s x_t), by least squares on y_{t-1} and x_t; NaN where nothing moves. */
export function effectiveDecay(y: ArrayLike<number>, x: ArrayLike<number>): number {
  let [yy, yx, xx, ny, nx] = [0, 0, 0, 0, 0];
  for (let t = 1; t < y.length; t++) {
    yy += y[t - 1] * y[t - 1];
    yx += y[t - 1] * x[t];
    xx += x[t] * x[t];
    ny += y[t] * y[t - 1];
    nx += y[t] * x[t];
  }
  if (xx === 0) return yy > 1e-12 ? ny / yy : NaN;
  const determinant = yy * xx - yx * yx;
  return determinant > 1e-9 * yy * xx ? (ny * xx - nx * yx) / determinant : NaN;
}

/** ybar_t = gamma (ybar_{t-1} + s x_t). */
export function integrate(before: number, x: number, decay: number, scale: number): number {
  return decay * (before + scale * x);
}

/** With a fraction p of the neurons silent, drawn without order: the loop and the input lose (1 - p) each. */
export function silencedTask(decay: number, scale: number, p: number): { decay: number; scale: number } {
  return { decay: decay * (1 - p), scale: scale * (1 - p) };
}
