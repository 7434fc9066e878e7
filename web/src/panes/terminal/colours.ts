import type { ITheme } from "@xterm/xterm";

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

/** The terminal's colours in the current theme of the style sheet. */
export function colours(container: HTMLElement): ITheme {
  const probe = container.appendChild(document.createElement("span"));
  // A custom property's value is its source text; only as an element's colour does it resolve to light or dark.
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const basic = Object.fromEntries(
    NAMES.flatMap((name) => {
      const bright = `bright${name.charAt(0).toUpperCase()}${name.slice(1)}`;
      return [
        [name, colour(`ansi-${name}`)],
        [bright, colour(name === "black" ? "soft" : `ansi-${name}`)],
      ];
    }),
  );
  const theme: ITheme = {
    ...basic,
    foreground: colour("text"),
    background: colour("back"),
    cursor: colour("text"),
    selectionBackground: colour("ansi-selection"),
  };
  probe.remove();
  return theme;
}
