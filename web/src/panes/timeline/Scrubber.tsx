import { Button } from "../../components/Button";

/** Chooses an event by dragging, by keys, or step by step. */
export function Scrubber({ at, head, onChange }: { at: number; head: number; onChange: (id: number) => void }) {
  return (
    <div className="timeline-scrubber">
      <Button label="Previous event" disabled={at <= 1} onClick={() => onChange(at - 1)}>
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
      <Button label="Next event" disabled={at >= head} onClick={() => onChange(at + 1)}>
        ›
      </Button>
      <span className="digits">
        {at} / {head}
      </span>
    </div>
  );
}
