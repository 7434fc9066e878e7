import { useState } from "react";

import { said } from "../../api";
import { Button } from "../../components/Button";
import type { ObservationRecord } from "../../events";
import type { SessionStore } from "../../store";
import { Ansi } from "./Ansi";
import { Trouble } from "./Notice";
import { bytes } from "./say";

/** Bytes that are loaded at once. */
const PIECE = 200_000;

/** The part of a large output that its event does not have: its end, and more of it on demand. */
export function Rest({ session, observation }: { session: SessionStore; observation: ObservationRecord }) {
  const { blob, size, tail, content } = observation;
  const start = new TextEncoder().encode(content).length;
  const [more, setMore] = useState("");
  const [loaded, setLoaded] = useState(start);
  const [error, setError] = useState("");
  if (!blob) return null;
  const load = async () => {
    try {
      const { text } = await session.api.blobText(blob, loaded, PIECE);
      setMore((before) => before + text);
      setLoaded((before) => before + PIECE);
    } catch (problem) {
      setError(said(problem));
    }
  };
  return (
    <>
      {more && <Ansi text={more} label="More of the output" />}
      {loaded < size && (
        <>
          <p className="pane-gap">
            <Button onClick={() => void load()}>Load more</Button>
            <span className="faint">{bytes(size)} in all</span>
          </p>
          <Ansi text={tail} label="The end of the output" />
        </>
      )}
      <Trouble text={error} />
    </>
  );
}
