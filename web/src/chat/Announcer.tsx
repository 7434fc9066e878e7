/** A live region: the conversation itself is silent, as rows come and go with scrolling. */

import { useEffect, useRef, useState } from "react";
import { type SessionStore, useSessionPart } from "../store";
import { announcement } from "./announce";

export function Announcer({ store }: { store: SessionStore }) {
  const events = useSessionPart(store, (now) => now.events);
  const told = useRef(store.snapshot().head);
  const [text, setText] = useState("");
  useEffect(() => {
    const fresh = events.filter((event) => event.id > told.current);
    told.current = Math.max(told.current, events.at(-1)?.id ?? 0);
    const said = announcement(fresh);
    if (said) setText(said);
  }, [events]);
  return (
    <div className="chat-announcer" role="status">
      {text}
    </div>
  );
}
