import { useMemo, useReducer } from "react";

import type { EventRecord } from "../../events";
import { type SessionStore, useSessionPart } from "../../store";
import { Pages } from "./pages";

export interface Events {
  /** The newest event's id. */
  head: number;
  /** Any event, or null while it is loaded. */
  at: (id: number) => EventRecord | null;
  pages: Pages;
}

/** All events of a session by their ids: those of the store's window, the others loaded as they are looked at. */
export function usePages(session: SessionStore): Events {
  const events = useSessionPart(session, (now) => now.events);
  const head = useSessionPart(session, (now) => now.head);
  const first = events[0]?.id ?? 0;
  const [, changed] = useReducer((count: number) => count + 1, 0);
  const pages = useMemo(() => {
    const load = async (after: number, limit: number) => (await session.api.events({ after, limit })).events;
    return new Pages(load, changed);
  }, [session]);
  return { head, pages, at: (id) => events[id - first] ?? pages.get(id) };
}
