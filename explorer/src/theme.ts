/** Colours: one for each channel, wherever it appears. */

export interface Colours {
  text: string;
  soft: string;
  card: string;
  line: string;
  target: string;
  accent: string;
  plus: string;
  minus: string;
  silent: string;
  channels: string[];
}

const NUMBER = 5;

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const names = ["text", "soft", "card", "line", "target", "accent", "plus", "minus", "silent"] as const;
  const single = Object.fromEntries(names.map((name) => [name, of(name)])) as Record<(typeof names)[number], string>;
  return { ...single, channels: Array.from({ length: NUMBER }, (_, c) => of(`c${c + 1}`)) };
}

export function channel(all: Colours, c: number): string {
  return all.channels[c % all.channels.length];
}

export type RGB = [number, number, number];

export function rgb(hex: string): RGB {
  const full = hex.length === 4 ? hex.replace(/[0-9a-f]/gi, "$&$&") : hex;
  return [1, 3, 5].map((at) => parseInt(full.slice(at, at + 2), 16)) as RGB;
}

/** Colours mixed in the given parts, by their squares, as light is. */
export function mixed(parts: number[], of: RGB[]): RGB {
  const total = parts.reduce((sum, part) => sum + part, 0) || 1;
  return [0, 1, 2].map((k) =>
    Math.sqrt(parts.reduce((sum, part, c) => sum + (part / total) * of[c % of.length][k] ** 2, 0)),
  ) as RGB;
}

export const css = (c: RGB): string => `rgb(${c.map(Math.round).join(" ")})`;

/** The theme: the system's, until the button says otherwise. */
export function themed(button: HTMLButtonElement, changed: () => void): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let own: "light" | "dark" | null = null;
  const apply = (): void => {
    const theme = own ?? (system.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", `Colours: ${own ?? "as the system"}; change to ${theme === "dark" ? "light" : "dark"}`);
    changed();
  };
  button.addEventListener("click", () => {
    own = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  system.addEventListener("change", apply);
  apply();
}
