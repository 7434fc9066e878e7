import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useImperativeHandle, useRef, type ReactNode, type Ref } from "react";

export interface ListHandle {
  toEnd(): void;
  toKey(key: string | number): void;
  /** Whether the items are too few to scroll, and so to reach `onNearStart`. */
  isShort(): boolean;
}

interface Props<T> {
  items: readonly T[];
  keyOf: (item: T) => string | number;
  render: (item: T, index: number) => ReactNode;
  label: string;
  /** The assumed height in pixels of an item before it is measured. */
  estimate?: number;
  /** Start at the end, follow new items, and stay in place when older ones are prepended. */
  chat?: boolean;
  onNearStart?: () => void;
  onNearEnd?: () => void;
  /** Called when the list reaches or leaves its end. */
  onAtEnd?: (reached: boolean) => void;
  role?: "list" | "log" | "feed" | "group";
  className?: string;
  handle?: Ref<ListHandle>;
}

/** Pixels from an edge at which more items are loaded, and from the end at which the list still follows. */
const NEAR = 600;
const AT_END = 60;

/** A list of any length that renders only its visible items. */
export function VirtualList<T>(props: Props<T>) {
  const { items, keyOf, render, label, estimate = 80, chat = false, role = "list", className = "", handle } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => estimate,
    getItemKey: (index) => {
      const item = items[index];
      return item === undefined ? index : keyOf(item);
    },
    overscan: 6,
    useFlushSync: false, // rows that scroll into view are rendered in a task of their own
    anchorTo: chat ? "end" : "start",
    followOnAppend: chat,
    scrollEndThreshold: AT_END,
  });
  useImperativeHandle(handle, () => ({
    toEnd: () => virtual.scrollToIndex(items.length - 1, { align: "end" }),
    toKey: (key) => {
      const index = items.findIndex((item) => keyOf(item) === key);
      if (index >= 0) virtual.scrollToIndex(index, { align: "center" });
    },
    isShort: () => virtual.getTotalSize() < (scroller.current?.clientHeight ?? 0) + AT_END * 3,
  }));
  const started = useRef(false);
  const atEnd = useRef(true);
  const edges = [items[0], items.at(-1)].map((item) => item !== undefined && keyOf(item)).join(" ");
  useEffect(() => {
    if (items.length === 0) return;
    started.current = true;
    // Items that the user folds or unfolds between the first and the last do not move the list.
    if (chat && atEnd.current) virtual.scrollToIndex(items.length - 1, { align: "end" });
  }, [edges, chat, virtual]);
  const onScroll = () => {
    const element = scroller.current;
    if (element === null || !started.current) return;
    const hidden = element.scrollHeight - element.clientHeight;
    const below = hidden - element.scrollTop;
    if (below < AT_END !== atEnd.current) {
      atEnd.current = below < AT_END;
      props.onAtEnd?.(atEnd.current);
    }
    // Of few items, a place that is near both ends would load both pages, and each would displace the other.
    const near = Math.min(NEAR, hidden / 3);
    if (element.scrollTop < near) props.onNearStart?.();
    if (below < near) props.onNearEnd?.();
  };
  useEffect(() => {
    const element = scroller.current;
    if (element === null || !chat) return;
    // A question or a strip that appears takes height from the list, whose end would leave the view.
    const observer = new ResizeObserver(() => {
      if (atEnd.current) element.scrollTop = element.scrollHeight;
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [chat]);
  const visible = virtual.getVirtualItems();
  return (
    <div
      ref={scroller}
      className={`virtual ${className}`}
      role={role === "list" ? undefined : role}
      aria-label={role === "list" ? undefined : label}
      tabIndex={0}
      onScroll={onScroll}
    >
      <div
        role={role === "list" ? "list" : undefined}
        aria-label={role === "list" ? label : undefined}
        style={{ height: virtual.getTotalSize(), position: "relative" }}
      >
        {visible.map(({ index, key, start }) => {
          const item = items[index];
          if (item === undefined) return null;
          return (
            <div
              key={String(key)}
              ref={virtual.measureElement}
              data-index={index}
              role={role === "list" ? "listitem" : undefined}
              style={{ position: "absolute", top: 0, left: 0, right: 0, transform: `translateY(${start}px)` }}
            >
              {render(item, index)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
