import { FitAddon } from "@xterm/addon-fit";
import { Terminal as Xterm } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { useEffect, useMemo, useRef, useState } from "react";

import { type SessionStore, useSessionPart } from "../store";
import { Earlier } from "./common/Earlier";
import { colours } from "./terminal/colours";
import { transcript } from "./terminal/transcript";
import { type Chunk, writing } from "./terminal/writing";

/** What the session's shells show, as it is printed. */
export default function TerminalPane({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const output = useSessionPart(session, (now) => now.live.output);
  const chunks = useMemo(() => transcript(cards, output), [cards, output]);
  return (
    <div className="pane-column">
      <Earlier session={session} what="commands" />
      {chunks.length === 0 && <p className="pane-empty">No command has been run yet.</p>}
      <Screen chunks={chunks} />
    </div>
  );
}

function Screen({ chunks }: { chunks: Chunk[] }) {
  const place = useRef<HTMLDivElement>(null);
  const written = useRef<Chunk[]>([]);
  const [xterm, setXterm] = useState<Xterm | null>(null);

  useEffect(() => {
    if (!place.current) return;
    const made = new Xterm({
      convertEol: true,
      disableStdin: true,
      cursorStyle: "underline",
      cursorInactiveStyle: "none",
      fontFamily: getComputedStyle(place.current).fontFamily,
      fontSize: 13,
      minimumContrastRatio: 4.5,
      screenReaderMode: true,
      scrollback: 10_000,
      theme: colours(place.current),
    });
    const fit = new FitAddon();
    made.loadAddon(fit);
    made.open(place.current);
    made.textarea?.setAttribute("aria-label", "Terminal, to be read only");
    const sized = new ResizeObserver(() => {
      // A pane that is not shown has no size; fitting to that would break every line.
      if (place.current?.clientWidth) fit.fit();
    });
    sized.observe(place.current);
    const recoloured = watchTheme(() => {
      if (place.current) made.options.theme = colours(place.current);
    });
    setXterm(made);
    return () => {
      recoloured();
      sized.disconnect();
      made.dispose();
      written.current = [];
      setXterm(null);
    };
  }, []);

  useEffect(() => {
    if (!xterm) return;
    const { reset, text } = writing(written.current, chunks);
    if (reset) xterm.reset();
    if (text) xterm.write(text);
    written.current = chunks;
  }, [xterm, chunks]);

  return <div className="terminal-screen" ref={place} role="region" aria-label="Terminal" />;
}

/** Call when the page turns light or dark; returns what ends it. */
function watchTheme(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributes: true });
  system.addEventListener("change", changed);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", changed);
  };
}
