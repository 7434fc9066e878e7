import { useState, type KeyboardEvent, type PointerEvent } from "react";

const LEAST = 25;
const MOST = 75;

/** The border between chat and panes, to be dragged, or moved by the arrows. `width` is per cent. */
export function Divider({ width, onMove }: { width: number; onMove: (width: number) => void }) {
  const [held, setHeld] = useState(false);
  const move = (wanted: number) => onMove(Math.min(MOST, Math.max(LEAST, wanted)));
  const drag = (event: PointerEvent<HTMLDivElement>) => {
    const whole = event.currentTarget.parentElement?.getBoundingClientRect();
    if (held && whole) move(((event.clientX - whole.left) / whole.width) * 100);
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
        setHeld(true);
      }}
      onPointerMove={drag}
      onPointerUp={() => setHeld(false)}
    />
  );
}
