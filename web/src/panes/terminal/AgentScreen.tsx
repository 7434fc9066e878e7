import { useEffect, useMemo, useRef, useState } from "react";

import { type SessionStore, useSessionPart } from "../../store";
import { Empty } from "../common/Empty";
import { LoadEarlier } from "../common/LoadEarlier";
import { openScreen } from "./screen";
import { transcript } from "./transcript";
import { type Chunk, updateOf } from "./updates";
import { Writer } from "./writer";

/** The commands and output of the session's shells. */
export function AgentScreen({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const output = useSessionPart(session, (now) => now.live.output);
  const asked = useSessionPart(session, (now) => now.info.asked);
  const chunks = useMemo(
    () => transcript(cards, output, new Set(asked.map(({ action }) => action.id))),
    [cards, output, asked],
  );
  return (
    <>
      <LoadEarlier session={session} noun="commands" />
      {chunks.length === 0 && <Empty>No commands yet.</Empty>}
      <Transcript chunks={chunks} />
    </>
  );
}

function Transcript({ chunks }: { chunks: Chunk[] }) {
  const container = useRef<HTMLDivElement>(null);
  const written = useRef<Chunk[]>([]);
  const [writer, setWriter] = useState<Writer | null>(null);

  useEffect(() => {
    if (!container.current) return;
    const screen = openScreen(container.current, {
      convertEol: true,
      disableStdin: true,
      cursorStyle: "underline",
      cursorInactiveStyle: "none",
    });
    // Tab leaves the terminal, and the page's shortcuts, such as Escape, work while it has the focus.
    screen.xterm.attachCustomKeyEventHandler(
      ({ key, altKey, ctrlKey }) => key !== "Escape" && key !== "Tab" && !altKey && !ctrlKey,
    );
    screen.xterm.textarea?.setAttribute("aria-label", "Terminal, read only");
    const stop = screen.follow();
    const own = new Writer(screen.xterm);
    setWriter(own);
    return () => {
      stop();
      own.stop();
      screen.xterm.dispose();
      written.current = [];
      setWriter(null);
    };
  }, []);

  useEffect(() => {
    if (!writer) return;
    const { reset, text } = updateOf(written.current, chunks);
    if (reset) writer.replace(text);
    else writer.add(text);
    written.current = chunks;
  }, [writer, chunks]);

  return <div className="terminal-screen" ref={container} role="region" aria-label="Terminal" />;
}
