/** Drawing surfaces. */

export interface Surface {
  context: CanvasRenderingContext2D;
  width: number; // in CSS pixels
  height: number;
}

/** A cleared canvas, sharp on any screen. */
export function surface(canvas: HTMLCanvasElement): Surface {
  const ratio = devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = `12px ${getComputedStyle(canvas).fontFamily}`;
  context.textBaseline = "middle";
  return { context, width, height };
}

export interface Point {
  x: number;
  y: number;
}

/** Where a pointer is in a canvas, in CSS pixels. */
export function place(canvas: HTMLCanvasElement, event: PointerEvent): Point {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

export interface Gestures {
  hover?: (at: Point | null, event: PointerEvent) => void;
  click?: (at: Point) => void;
  drag?: (from: Point, to: Point, done: boolean) => void;
}

const CLICK = 5; // pixels that a click may wander

/** Hovering, clicking and dragging, by mouse, pen or finger. */
export function gestures(canvas: HTMLCanvasElement, { hover, click, drag }: Gestures): void {
  let from: Point | null = null;
  let dragging = false;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = place(canvas, event);
    dragging = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = place(canvas, event);
    hover?.(at, event);
    if (!from) return;
    dragging ||= Math.hypot(at.x - from.x, at.y - from.y) > CLICK;
    if (dragging) drag?.(from, at, false);
  });
  canvas.addEventListener("pointerup", (event) => {
    const at = place(canvas, event);
    if (from && dragging) drag?.(from, at, true);
    else if (from) click?.(at);
    from = null;
  });
  canvas.addEventListener("pointercancel", () => (from = null));
  canvas.addEventListener("pointerleave", (event) => hover?.(null, event));
}
