import { Button } from "../../components/Button";

/** One of several, with buttons to the one before and after. */
export function Steps({
  at,
  count,
  what,
  choose,
}: {
  at: number;
  count: number;
  what: string;
  choose: (at: number) => void;
}) {
  return (
    <div className="pane-steps" role="group" aria-label={`Which ${what}`}>
      <Button
        label={`The ${what} before`}
        disabled={at <= 0}
        onClick={() => {
          choose(at - 1);
        }}
      >
        ‹
      </Button>
      <span aria-live="polite">
        {what} {count === 0 ? 0 : at + 1} of {count}
      </span>
      <Button
        label={`The next ${what}`}
        disabled={at >= count - 1}
        onClick={() => {
          choose(at + 1);
        }}
      >
        ›
      </Button>
    </div>
  );
}
