/** Terminal output as spans with CSS classes. */

import Anser, { type AnserJsonEntry } from "anser";
import { coloured, exact } from "./text";

interface AnsiSpan {
  text: string;
  className: string;
}

/** Background colours, and colours outside the basic eight, would be unreadable in one of the themes: they are dropped. */
export function ansiSpans(text: string): AnsiSpan[] {
  const parts = Anser.ansiToJson(coloured(text), { use_classes: true, remove_empty: true });
  return parts.map(({ content, fg, bg, decorations, isInverted }: AnserJsonEntry & { isInverted?: boolean }) => {
    const colour = (isInverted ? bg : fg)?.replace(/bright-|ansi-(?:palette|truecolor).*/, "");
    const classes = [...decorations.map((decoration) => `ansi-${decoration}`), colour];
    return { text: exact(content), className: classes.filter(Boolean).join(" ") };
  });
}
