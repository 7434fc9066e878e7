import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useMemo, useRef, useState } from "react";

import { type SessionStore, useSessionPart } from "../store";
import { Empty } from "./common/Empty";
import { LoadEarlier } from "./common/LoadEarlier";
import { colours } from "./terminal/colours";
import { transcript } from "./terminal/transcript";
import { type Chunk, updateOf } from "./terminal/updates";

/** The commands and output of the session's shells. */
export default function TerminalPane({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const output = useSessionPart(session, (now) => now.live.output);
  const asked = useSessionPart(session, (now) => now.info.asked);
  const chunks = useMemo(
    () => transcript(cards, output, new Set(asked.map(({ action }) => action.id))),
    [cards, output, asked],
  );
  return (
    <div className="pane-column">
      <LoadEarlier session={session} noun="commands" />
      {chunks.length === 0 && <Empty>No commands yet.</Empty>}
      <Screen chunks={chunks} />
    </div>
  );
}

function Screen({ chunks }: { chunks: Chunk[] }) {
  const container = useRef<HTMLDivElement>(null);
  const written = useRef<Chunk[]>([]);
  const [xterm, setXterm] = useState<Xterm | null>(null);

  useEffect(() => {
    if (!container.current) return;
    const terminal = new Xterm({
      convertEol: true,
      disableStdin: true,
      cursorStyle: "underline",
      cursorInactiveStyle: "none",
      fontFamily: getComputedStyle(container.current).fontFamily,
      fontSize: 13,
      minimumContrastRatio: 4.5,
      screenReaderMode: true,
      scrollback: 10_000,
      theme: colours(container.current),
    });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    terminal.open(container.current);
    // The page's shortcuts, such as Escape, work while the terminal has the focus.
    terminal.attachCustomKeyEventHandler(({ key, altKey, ctrlKey }) => key !== "Escape" && !altKey && !ctrlKey);
    terminal.textarea?.setAttribute("aria-label", "Terminal, read only");
    const resizes = new ResizeObserver(() => {
      // A hidden pane has no size; fitting to it would break every line.
      if (container.current?.clientWidth) fit.fit();
    });
    resizes.observe(container.current);
    const stopWatching = watchTheme(() => {
      if (container.current) terminal.options.theme = colours(container.current);
    });
    setXterm(terminal);
    return () => {
      stopWatching();
      resizes.disconnect();
      terminal.dispose();
      written.current = [];
      setXterm(null);
    };
  }, []);

  useEffect(() => {
    if (!xterm) return;
    const { reset, text } = updateOf(written.current, chunks);
    if (reset) xterm.reset();
    if (text) xterm.write(text);
    written.current = chunks;
  }, [xterm, chunks]);

  return <div className="terminal-screen" ref={container} role="region" aria-label="Terminal" />;
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
