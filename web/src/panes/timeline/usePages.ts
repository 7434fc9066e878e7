import { useMemo, useReducer } from "react";

import type { EventRecord } from "../../events";
import { type SessionStore, useSessionPart } from "../../store";
import { Pages } from "./pages";

export interface Events {
  /** The id of the newest event. */
  head: number;
  /** Return an event, or null while it is loading. */
  at: (id: number) => EventRecord | null;
  pages: Pages;
}

/** All events of a session: the store's window, and the others loaded on demand. */
export function usePages(session: SessionStore): Events {
  const events = useSessionPart(session, (now) => now.events);
  const head = useSessionPart(session, (now) => now.head);
  const first = events[0]?.id ?? 0;
  const [, rerender] = useReducer((count: number) => count + 1, 0);
  const pages = useMemo(() => {
    const load = async (after: number, limit: number) => (await session.api.events({ after, limit })).events;
    return new Pages(load, rerender);
  }, [session]);
  return { head, pages, at: (id) => events[id - first] ?? pages.get(id) };
}
