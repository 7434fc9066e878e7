import { Button } from "../../components/Button";

interface Props {
  index: number;
  count: number;
  noun: string;
  onChange: (index: number) => void;
}

/** The position in a series, with buttons to the previous and next item. */
export function Stepper({ index, count, noun, onChange }: Props) {
  return (
    <div className="row digits" role="group" aria-label={`Choose a ${noun}`}>
      <Button label={`Previous ${noun}`} disabled={index <= 0} onClick={() => onChange(index - 1)}>
        ‹
      </Button>
      <span aria-live="polite">
        {noun} {count === 0 ? 0 : index + 1} of {count}
      </span>
      <Button label={`Next ${noun}`} disabled={index >= count - 1} onClick={() => onChange(index + 1)}>
        ›
      </Button>
    </div>
  );
}
