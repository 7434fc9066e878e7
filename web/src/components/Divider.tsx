import { useState, type KeyboardEvent, type PointerEvent } from "react";

const LEAST = 25;
const MOST = 75;

/** The border between chat and panes, moved by dragging or the arrow keys. `width` is in percent. */
export function Divider({ width, onMove }: { width: number; onMove: (width: number) => void }) {
  const [dragging, setDragging] = useState(false);
  const move = (target: number) => onMove(Math.min(MOST, Math.max(LEAST, target)));
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    const whole = event.currentTarget.parentElement?.getBoundingClientRect();
    if (dragging && whole) move(((event.clientX - whole.left) / whole.width) * 100);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -2, ArrowRight: 2 }[event.key];
    if (step !== undefined) move(width + step);
  };
  return (
    <div
      className="divider"
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the chat"
      aria-valuenow={Math.round(width)}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        setDragging(true);
      }}
      onPointerMove={drag}
      onPointerUp={() => setDragging(false)}
    />
  );
}
