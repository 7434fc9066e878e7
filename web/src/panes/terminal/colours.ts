import type { ITheme } from "@xterm/xterm";

/** The terminal's colours, as the style sheet has them where it is shown. */
export function colours(place: HTMLElement): ITheme {
  const probe = place.appendChild(document.createElement("span"));
  // A custom property is given as it was written; only as a colour of an element it is resolved to light or dark.
  const of = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const named = {
    black: of("ansi-black"),
    red: of("ansi-red"),
    green: of("ansi-green"),
    yellow: of("ansi-yellow"),
    blue: of("ansi-blue"),
    magenta: of("ansi-magenta"),
    cyan: of("ansi-cyan"),
    white: of("ansi-white"),
  };
  const theme: ITheme = {
    ...named,
    brightBlack: of("soft"),
    brightRed: named.red,
    brightGreen: named.green,
    brightYellow: named.yellow,
    brightBlue: named.blue,
    brightMagenta: named.magenta,
    brightCyan: named.cyan,
    brightWhite: named.white,
    foreground: of("text"),
    background: of("back"),
    cursor: of("text"),
    selectionBackground: of("ansi-selection"),
  };
  probe.remove();
  return theme;
}
