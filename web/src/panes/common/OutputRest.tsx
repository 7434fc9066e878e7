import { Button } from "../../components/Button";
import { usePager } from "../../components/pager";
import { Problem } from "../../components/Problem";
import type { ObservationRecord } from "../../events";
import { bytes } from "../../wording/format";
import { Ansi } from "./Ansi";

/** The part of a large output that its event lacks: its end, and the middle on demand. */
export function OutputRest({ observation }: { observation: ObservationRecord }) {
  return observation.blob === null ? null : <BlobRest observation={observation} blob={observation.blob} />;
}

function BlobRest({ observation, blob }: { observation: ObservationRecord; blob: string }) {
  const start = new TextEncoder().encode(observation.content).length;
  const { pieces, left, busy, problem, more } = usePager(blob, observation.size, start);
  return (
    <>
      {pieces.length > 0 && <Ansi text={pieces.join("")} label="More of the output" />}
      {left > 0 && (
        <>
          <p className="row">
            <Button disabled={busy} onClick={more}>
              Load more
            </Button>
            <span className="faint">{bytes(observation.size)} in all</span>
          </p>
          <Ansi text={observation.tail} label="The end of the output" />
        </>
      )}
      <Problem text={problem} />
    </>
  );
}
