// What all terminals of the page share: they fit into their container and follow the page's theme.

import { FitAddon } from "@xterm/addon-fit";
import { type ITerminalOptions, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";

import { colours } from "./colours";

export interface Screen {
  xterm: Terminal;
  /** Fit the terminal into its element now, and whenever either changes; return a function that stops this. */
  follow(): () => void;
}

/** Open a terminal in an element of the page. */
export function openScreen(element: HTMLElement, options: ITerminalOptions): Screen {
  const xterm = new Terminal({
    fontFamily: getComputedStyle(element).fontFamily,
    fontSize: 13,
    minimumContrastRatio: 4.5,
    screenReaderMode: true,
    scrollback: 10_000,
    theme: colours(element),
    ...options,
  });
  const fit = new FitAddon();
  xterm.loadAddon(fit);
  xterm.open(element);
  const follow = () => {
    const resizes = new ResizeObserver(() => {
      // A hidden pane has no size; fitting to it would break every line.
      if (element.clientWidth) fit.fit();
    });
    resizes.observe(element);
    const paint = () => (xterm.options.theme = colours(element));
    paint();
    if (element.clientWidth) fit.fit();
    const stopWatching = watchTheme(paint);
    return () => {
      stopWatching();
      resizes.disconnect();
    };
  };
  return { xterm, follow };
}

/** Call `onChange` when the page turns light or dark; return a function that stops the calls. */
function watchTheme(onChange: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(onChange);
  chosen.observe(document.documentElement, { attributes: true });
  system.addEventListener("change", onChange);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", onChange);
  };
}
