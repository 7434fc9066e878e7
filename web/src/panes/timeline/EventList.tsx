import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, memo, useEffect, useRef } from "react";

import type { EventRecord } from "../../events";
import { clock } from "../common/say";
import { describe } from "./describe";
import type { Events } from "./usePages";

const HEIGHT = 28;

/** Every event in a line; the chosen one is kept in sight. */
export function EventList({
  events,
  chosen,
  choose,
}: {
  events: Events;
  chosen: number;
  choose: (id: number) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: events.head,
    getScrollElement: () => place.current,
    estimateSize: () => HEIGHT,
    overscan: 12,
  });
  useEffect(() => {
    if (chosen > 0) list.scrollToIndex(chosen - 1, { align: "auto" });
  }, [list, chosen]);
  const pressed = (event: KeyboardEvent) => {
    const to = destination(event.key, chosen, events.head);
    if (to === null || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    choose(Math.min(events.head, Math.max(1, to)));
  };
  return (
    <div
      className="timeline-list"
      ref={place}
      role="listbox"
      aria-label="Events"
      aria-activedescendant={`timeline-${chosen}`}
      tabIndex={0}
      onKeyDown={pressed}
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
            choose={choose}
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
  choose,
}: {
  id: number;
  top: number;
  event: EventRecord | null;
  head: number;
  chosen: boolean;
  choose: (id: number) => void;
}) {
  const told = event && describe(event);
  return (
    <div
      id={`timeline-${id}`}
      className={`timeline-row timeline-${told?.tone ?? "record"}`}
      role="option"
      aria-selected={chosen}
      aria-setsize={head}
      aria-posinset={id}
      style={{ height: HEIGHT, transform: `translateY(${top}px)` }}
      onClick={() => {
        choose(id);
      }}
    >
      <span className="timeline-id">{id}</span>
      <span className="timeline-what">{told?.what ?? "…"}</span>
      <span className="timeline-text">{told?.text}</span>
      {event?.timestamp && <time className="faint">{clock(event.timestamp)}</time>}
    </div>
  );
});
