/** Terminal output as spans with CSS classes, and with styles for colours that no class has. */

import Anser from "anser";
import { paletteColour, type Rgb, styleOf } from "./colours";
import { coloured, exact } from "./text";

interface AnsiSpan {
  text: string;
  className: string;
  style?: { color: string; backgroundColor?: string };
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];
const BASIC = new RegExp(`^ansi-(?:${NAMES.join("|")})$`);

export function ansiSpans(text: string): AnsiSpan[] {
  const parts = Anser.ansiToJson(coloured(text), { use_classes: true, remove_empty: true });
  return parts.map(({ content, fg, fg_truecolor, bg, bg_truecolor, decorations }) => {
    const ground = colourOf(bg, bg_truecolor);
    // The eight colours are the theme's.
    const themed = ground === null && BASIC.test(fg ?? "");
    const colour = themed ? null : colourOf(fg, fg_truecolor);
    const classes = [...decorations.map((decoration) => `ansi-${decoration}`), themed ? fg : ""];
    const span = { text: exact(content), className: classes.filter(Boolean).join(" ") };
    return colour === null && ground === null ? span : { ...span, style: styleOf(colour, ground) };
  });
}

/** The colour that Anser names ansi-red, ansi-bright-red, ansi-palette-123 or ansi-truecolor; null is the default. */
function colourOf(name: string | null, truecolour: string | null): Rgb | null {
  if (!name) return null;
  // Anser keeps the last true colour beside the names of later colours.
  if (name === "ansi-truecolor") return (truecolour ?? "").split(",").map(Number) as unknown as Rgb;
  const [, kind, last = ""] = name.split("-");
  if (kind === "palette") return paletteColour(Number(last));
  return paletteColour(kind === "bright" ? 8 + NAMES.indexOf(last) : NAMES.indexOf(kind ?? ""));
}
