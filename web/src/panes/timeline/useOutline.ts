import { useEffect, useMemo, useReducer, useRef } from "react";

import { type SessionStore, useSessionPart } from "../../store";
import { Outline } from "./outline";

/** Milliseconds between requests while events come. */
const PAUSE = 300;

/** The outline of all events; it follows the session. */
export function useOutline(session: SessionStore): Outline {
  const head = useSessionPart(session, (now) => now.head);
  const connected = useSessionPart(session, (now) => now.connected);
  const outline = useMemo(() => new Outline(), [session]);
  const loading = useRef(false);
  const [, rerender] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const load = async () => {
      while (outline.last < session.snapshot().head) {
        const page = await session.api.outline(outline.last);
        if (page.types.length === 0) return;
        outline.add(page);
        rerender();
      }
    };
    if (loading.current || outline.last >= head) return;
    loading.current = true;
    setTimeout(
      () => {
        load()
          .catch(() => {}) // the next event or connection loads it again; the page shows a lost one
          .finally(() => (loading.current = false));
      },
      outline.last === 0 ? 0 : PAUSE,
    );
  }, [session, outline, head, connected]);
  return outline;
}
