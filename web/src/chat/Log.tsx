/** The conversation as a list that renders only its visible rows. */

import { useEffect, useMemo, useRef, useState } from "react";
import { Button } from "../components/Button";
import { type ListHandle, VirtualList } from "../components/VirtualList";
import { type SessionStore, useSessionPart } from "../store";
import { RowView } from "./RowView";
import { entriesOf } from "./entries";
import { rowOf, rowsOf } from "./rows";

/** `target` is the event to scroll to; a new object scrolls again. */
export function Log({ store, target }: { store: SessionStore; target: { event: number } | null }) {
  const events = useSessionPart(store, (now) => now.events);
  const subtasks = useSessionPart(store, (now) => now.subtasks);
  const live = useSessionPart(store, (now) => now.live);
  const head = useSessionPart(store, (now) => now.head);
  const entries = useMemo(() => entriesOf(events, subtasks), [events, subtasks]);
  const rows = useMemo(() => rowsOf(entries, live.texts), [entries, live.texts]);
  const list = useRef<ListHandle>(null);
  const [atEnd, setAtEnd] = useState(true);
  const behind = (events.at(-1)?.id ?? 0) < head;

  const current = useRef(rows);
  useEffect(() => {
    current.current = rows;
  });
  useEffect(() => {
    if (target === null) return;
    const row = rowOf(current.current, target.event);
    if (row !== null) list.current?.toKey(row.key);
  }, [target]);

  const toEnd = async () => {
    await store.latest().catch(() => {}); // the page says that the server does not respond
    requestAnimationFrame(() => list.current?.toEnd());
  };
  return (
    <div className="chat-log">
      <VirtualList
        chat
        role="group" // screen readers would read a log aloud while scrolling
        label="Conversation"
        items={rows}
        keyOf={(row) => row.key}
        render={(row) => <RowView row={row} live={row.kind === "card" ? (live.output.get(row.id) ?? "") : ""} />}
        handle={list}
        onNearStart={() => void store.older().catch(() => {})}
        onNearEnd={() => void store.newer().catch(() => {})}
        onAtEnd={(reached) => {
          setAtEnd(reached);
          store.setReading(!reached);
        }}
      />
      {(!atEnd || behind) && (
        <div className="chat-newest">
          <Button onClick={() => void toEnd()}>↓ Newest</Button>
        </div>
      )}
    </div>
  );
}
