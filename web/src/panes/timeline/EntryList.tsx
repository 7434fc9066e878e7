import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useEffect, useRef } from "react";

import type { EventRecord } from "../../events";
import { clock } from "../../wording/format";
import { entryLine } from "./eventLine";
import type { Entry } from "./outline";
import type { Events } from "./usePages";

const HEIGHT = 28;

interface Props {
  entries: readonly Entry[];
  events: Events;
  /** The position of the chosen entry; -1 if it is none of these. */
  chosen: number;
  onChange: (entry: Entry) => void;
}

/** A line for each entry; the chosen one stays visible. */
export function EntryList({ entries, events, chosen, onChange }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => HEIGHT,
    overscan: 8,
  });
  useEffect(() => {
    if (chosen >= 0) list.scrollToIndex(chosen, { align: "auto" });
  }, [list, chosen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const target = destination(event.key, chosen, entries.length - 1);
    if (target === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const entry = entries[Math.min(entries.length - 1, Math.max(0, target))];
    if (entry) onChange(entry);
  };
  const rows = list.getVirtualItems();
  // A row that is scrolled away does not exist, so nothing may refer to it.
  const id = rows.some(({ index }) => index === chosen) ? entries[chosen]?.id : undefined;
  return (
    <div
      className="timeline-list"
      ref={scroller}
      role="listbox"
      aria-label="Events"
      aria-activedescendant={id === undefined ? undefined : `timeline-${id}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div style={{ height: list.getTotalSize(), position: "relative" }} role="presentation">
        {rows.map(({ key, index, start }) => {
          const entry = entries[index];
          if (entry === undefined) return null;
          return (
            <Row
              key={key}
              entry={entry}
              top={start}
              event={events.at(entry.id)}
              result={entry.end === entry.id ? null : events.at(entry.end)}
              position={index + 1}
              count={entries.length}
              chosen={index === chosen}
              onChange={onChange}
            />
          );
        })}
      </div>
    </div>
  );
}

function destination(key: string, at: number, last: number): number | null {
  switch (key) {
    case "ArrowUp":
      return at - 1;
    case "ArrowDown":
      return at + 1;
    case "PageUp":
      return at - 10;
    case "PageDown":
      return at + 10;
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return null;
  }
}

interface RowProps {
  entry: Entry;
  top: number;
  event: EventRecord | null;
  result: EventRecord | null;
  position: number;
  count: number;
  chosen: boolean;
  onChange: (entry: Entry) => void;
}

const Row = memo(function Row({ entry, top, event, result, position, count, chosen, onChange }: RowProps) {
  const line = event && entryLine(event, result);
  return (
    <div
      id={`timeline-${entry.id}`}
      className={`pane-choice timeline-row timeline-${line?.tone ?? "record"}`}
      role="option"
      aria-selected={chosen}
      aria-setsize={count}
      aria-posinset={position}
      style={{ height: HEIGHT, transform: `translateY(${top}px)` }}
      onClick={() => onChange(entry)}
    >
      <span className="timeline-id">{entry.id}</span>
      <span className="timeline-kind">{line?.kind ?? "…"}</span>
      <span className="grow cut faint">{line?.text}</span>
      {line?.outcome && <span className="timeline-outcome cut">{line.outcome}</span>}
      {event?.timestamp && <time className="faint">{clock(event.timestamp)}</time>}
    </div>
  );
});
