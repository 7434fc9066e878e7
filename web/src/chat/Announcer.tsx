/** A live region for screen readers; the conversation is none, as its rows come and go with scrolling. */

import { useEffect, useRef, useState } from "react";
import { type SessionStore, useSessionPart } from "../store";
import { announcement } from "./announce";

export function Announcer({ store }: { store: SessionStore }) {
  const events = useSessionPart(store, (now) => now.events);
  const last = useRef(store.snapshot().head);
  const [text, setText] = useState("");
  useEffect(() => {
    const fresh = events.filter((event) => event.id > last.current);
    last.current = Math.max(last.current, events.at(-1)?.id ?? 0);
    setText((before) => announcement(fresh) || before);
  }, [events]);
  return (
    <div className="hidden" role="status">
      {text}
    </div>
  );
}
