import { memo, useMemo } from "react";

import { Code } from "../components/code/Code";
import type { Of } from "../events";
import type { Card } from "../fold";
import { type SessionStore, useSessionPart } from "../store";
import { endingOf } from "../wording/actions";
import { Ansi } from "./common/Ansi";
import { LoadEarlier } from "./common/LoadEarlier";
import { Empty } from "./common/Empty";
import { OutputRest } from "./common/OutputRest";
import { useBottom } from "./common/useBottom";

type Cell = Card & { action: Of<"IPythonRunCellAction" | "RunCodeAction"> };

/** The cells of the session's notebook, with their output and pictures. */
export default function NotebookPane({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const output = useSessionPart(session, (now) => now.live.output);
  const cells = useMemo(() => cards.filter(isCell), [cards]);
  const scroll = useBottom(cells.length);
  return (
    <div className="pane-column">
      <LoadEarlier session={session} noun="cells" />
      {cells.length === 0 && <Empty>No cells yet.</Empty>}
      <ol className="list pane-scroll" ref={scroll} tabIndex={0} aria-label="Cells, oldest first">
        {cells.map((cell) => (
          <CellView key={cell.id} session={session} cell={cell} live={output.get(cell.id) ?? ""} />
        ))}
      </ol>
    </div>
  );
}

function isCell(card: Card): card is Cell {
  return card.action.type === "IPythonRunCellAction" || card.action.type === "RunCodeAction";
}

const CellView = memo(function CellView({ session, cell, live }: { session: SessionStore; cell: Cell; live: string }) {
  const name = `Cell of event ${cell.id}`;
  return (
    <li className="notebook-cell">
      <header>
        <span className="mono faint">{cell.observation ? `[${cell.id}]` : "[*]"}</span>
        <span className="faint">{cell.subtask ? `delegate since event ${cell.subtask}` : ""}</span>
      </header>
      <Code text={cell.action.code} language="python" />
      <CellOutput session={session} cell={cell} live={live} name={name} />
    </li>
  );
});

function CellOutput({ session, cell, live, name }: { session: SessionStore; cell: Cell; live: string; name: string }) {
  const result = cell.observation;
  if (!result) return live ? <Ansi text={live} label={`${name}: output so far`} /> : null;
  if (result.type !== "IPythonRunCellObservation" && result.type !== "RunCodeObservation") {
    return <Ansi text={result.content} label={`${name}: error`} />;
  }
  const ending = endingOf(result);
  return (
    <>
      {result.content && <Ansi text={result.content} label={`${name}: output`} />}
      <OutputRest observation={result} />
      {result.images.map((image, index) =>
        image.blob ? (
          <img
            key={image.blob + String(index)}
            className="notebook-picture"
            src={session.api.blobUrl(image.blob)}
            alt={`${name}: picture ${index + 1} of ${result.images.length}`}
          />
        ) : null,
      )}
      {ending && <p className={ending.tone === "bad" ? "error-text" : "faint"}>{ending.text}</p>}
    </>
  );
}
