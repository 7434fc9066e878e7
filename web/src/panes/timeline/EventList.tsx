import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useEffect, useRef } from "react";

import type { EventRecord } from "../../events";
import { clock } from "../../wording/format";
import { eventLine } from "./eventLine";
import type { Events } from "./usePages";

const HEIGHT = 28;

interface Props {
  events: Events;
  chosen: number;
  onChange: (id: number) => void;
}

/** A line for each event; the chosen one stays visible. */
export function EventList({ events, chosen, onChange }: Props) {
  const scroller = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: events.head,
    getScrollElement: () => scroller.current,
    estimateSize: () => HEIGHT,
    overscan: 12,
  });
  useEffect(() => {
    if (chosen > 0) list.scrollToIndex(chosen - 1, { align: "auto" });
  }, [list, chosen]);
  const onKeyDown = (event: KeyboardEvent) => {
    const target = destination(event.key, chosen, events.head);
    if (target === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    onChange(Math.min(events.head, Math.max(1, target)));
  };
  return (
    <div
      className="timeline-list"
      ref={scroller}
      role="listbox"
      aria-label="Events"
      aria-activedescendant={`timeline-${chosen}`}
      tabIndex={0}
      onKeyDown={onKeyDown}
    >
      <div style={{ height: list.getTotalSize(), position: "relative" }} role="presentation">
        {list.getVirtualItems().map((item) => (
          <Row
            key={item.key}
            id={item.index + 1}
            top={item.start}
            event={events.at(item.index + 1)}
            head={events.head}
            chosen={item.index + 1 === chosen}
            onChange={onChange}
          />
        ))}
      </div>
    </div>
  );
}

function destination(key: string, at: number, head: number): number | null {
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
      return 1;
    case "End":
      return head;
    default:
      return null;
  }
}

const Row = memo(function Row({
  id,
  top,
  event,
  head,
  chosen,
  onChange,
}: {
  id: number;
  top: number;
  event: EventRecord | null;
  head: number;
  chosen: boolean;
  onChange: (id: number) => void;
}) {
  const line = event && eventLine(event);
  return (
    <div
      id={`timeline-${id}`}
      className={`pane-choice timeline-row timeline-${line?.tone ?? "record"}`}
      role="option"
      aria-selected={chosen}
      aria-setsize={head}
      aria-posinset={id}
      style={{ height: HEIGHT, transform: `translateY(${top}px)` }}
      onClick={() => onChange(id)}
    >
      <span className="timeline-id">{id}</span>
      <span className="timeline-kind">{line?.kind ?? "…"}</span>
      <span className="grow cut faint">{line?.text}</span>
      {event?.timestamp && <time className="faint">{clock(event.timestamp)}</time>}
    </div>
  );
});
