/** The conversation as a list that renders only its visible rows. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { Button } from "../components/Button";
import { type ListHandle, VirtualList } from "../components/VirtualList";
import { PAGE, type SessionStore, useSessionPart, WINDOW } from "../store";
import { RowView } from "./RowView";
import { entriesOf } from "./entries";
import { Columns, columnsOf } from "./folding";
import { type GroupRow, rowOf, rowsOf } from "./rows";
import type { Fork } from "./Step";

/** Pixels of the lowest row, a step's line: rows that are not measured yet must not seem to fill the list. */
const ROW = 32;

interface Props {
  store: SessionStore;
  /** The event to scroll to; a new object scrolls again. */
  target: { event: number } | null;
  onFork: Fork;
}

export function Log({ store, target, onFork }: Props) {
  const events = useSessionPart(store, (now) => now.events);
  const subtasks = useSessionPart(store, (now) => now.subtasks);
  const live = useSessionPart(store, (now) => now.live);
  const head = useSessionPart(store, (now) => now.head);
  const entries = useMemo(() => entriesOf(events, subtasks), [events, subtasks]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const rows = useMemo(() => rowsOf(entries, live.texts, opened), [entries, live.texts, opened]);
  const open = useCallback(({ steps }: GroupRow, open: boolean) => {
    setOpened((before) => {
      const after = new Set(before);
      for (const { id } of steps) after[open ? "add" : "delete"](id);
      return after;
    });
  }, []);
  const box = useRef<HTMLDivElement>(null);
  const columns = useColumns(box);
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
  const older = () => void store.older().catch(() => {});
  // Folded, the events of a page may be too few rows to scroll, and it is scrolling that loads more.
  useEffect(() => {
    let stale = false;
    const fill = async () => {
      const isRoom = () => store.snapshot().first > 1 && store.snapshot().events.length + PAGE <= WINDOW;
      while (!stale && isRoom() && list.current?.isShort()) await store.older();
    };
    fill().catch(() => {});
    return () => {
      stale = true;
    };
  }, [store, rows]);
  return (
    <div className="chat-log" ref={box}>
      <Columns value={columns}>
        <VirtualList
          chat
          role="group" // screen readers would read a log aloud while scrolling
          label="Conversation"
          estimate={ROW}
          items={rows}
          keyOf={(row) => row.key}
          render={(row) => (
            <RowView
              row={row}
              live={row.kind === "step" ? (live.output.get(row.id) ?? "") : ""}
              onFork={onFork}
              onOpen={open}
            />
          )}
          handle={list}
          onNearStart={older}
          onNearEnd={() => void store.newer().catch(() => {})}
          onAtEnd={(reached) => {
            setAtEnd(reached);
            store.setReading(!reached);
          }}
        />
      </Columns>
      {(!atEnd || behind) && (
        <div className="chat-newest">
          <Button onClick={() => void toEnd()}>↓ Newest</Button>
        </div>
      )}
    </div>
  );
}

/** The characters of a row of code or output in the conversation. */
function useColumns(box: RefObject<HTMLDivElement | null>): number {
  const [columns, setColumns] = useState(90);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return;
    const measure = () => setColumns(columnsOf(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [box]);
  return columns;
}
