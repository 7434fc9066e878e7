import { Button } from "../../components/Button";

/** Goes through the events by dragging, by keys, or one by one. */
export function Scrubber({ at, head, choose }: { at: number; head: number; choose: (id: number) => void }) {
  return (
    <div className="timeline-scrubber">
      <Button
        label="The event before"
        disabled={at <= 1}
        onClick={() => {
          choose(at - 1);
        }}
      >
        ‹
      </Button>
      <input
        type="range"
        min={1}
        max={head}
        value={at}
        aria-label="Event"
        aria-valuetext={`Event ${at} of ${head}`}
        onChange={(event) => {
          choose(event.target.valueAsNumber);
        }}
      />
      <Button
        label="The next event"
        disabled={at >= head}
        onClick={() => {
          choose(at + 1);
        }}
      >
        ›
      </Button>
      <span className="timeline-at">
        {at} / {head}
      </span>
    </div>
  );
}
