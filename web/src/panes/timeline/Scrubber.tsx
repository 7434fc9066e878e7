import { Button } from "../../components/Button";

interface Props {
  at: number;
  head: number;
  onChange: (event: number) => void;
  /** Go to another entry; null if there is none. */
  onStep: Record<"previous" | "next", (() => void) | null>;
}

/** Chooses an event by dragging, by keys, or entry by entry. */
export function Scrubber({ at, head, onChange, onStep }: Props) {
  return (
    <div className="timeline-scrubber">
      <Button label="Previous event" disabled={!onStep.previous} onClick={() => onStep.previous?.()}>
        ‹
      </Button>
      <input
        type="range"
        min={1}
        max={head}
        value={at}
        aria-label="Event"
        aria-valuetext={`Event ${at} of ${head}`}
        onChange={(event) => onChange(event.target.valueAsNumber)}
      />
      <Button label="Next event" disabled={!onStep.next} onClick={() => onStep.next?.()}>
        ›
      </Button>
      <span className="digits">
        {at} / {head}
      </span>
    </div>
  );
}
