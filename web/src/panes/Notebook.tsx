import { memo, useMemo } from "react";

import { Code } from "../components/Code";
import { isObservation, type Of } from "../events";
import type { Card } from "../fold";
import { type SessionStore, useSessionPart } from "../store";
import { Ansi } from "./common/Ansi";
import { Earlier } from "./common/Earlier";
import { Empty } from "./common/Notice";
import { Rest } from "./common/Rest";
import { useBottom } from "./common/useBottom";

type Cell = Card & { action: Of<"IPythonRunCellAction"> };

/** The cells that were run in the session's notebook, with their output and pictures. */
export default function NotebookPane({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const output = useSessionPart(session, (now) => now.live.output);
  const cells = useMemo(() => cards.filter(isCell), [cards]);
  const scroll = useBottom(cells.length);
  return (
    <div className="pane-column">
      <Earlier session={session} what="cells" />
      {cells.length === 0 && <Empty>No cell has been run yet.</Empty>}
      <ol className="pane-scroll notebook" ref={scroll} tabIndex={0} aria-label="Cells, oldest first">
        {cells.map((cell) => (
          <ShownCell key={cell.id} session={session} cell={cell} live={output.get(cell.id) ?? ""} />
        ))}
      </ol>
    </div>
  );
}

function isCell(card: Card): card is Cell {
  return card.action.type === "IPythonRunCellAction";
}

const ShownCell = memo(function ShownCell({
  session,
  cell,
  live,
}: {
  session: SessionStore;
  cell: Cell;
  live: string;
}) {
  const name = `Cell of event ${cell.id}`;
  return (
    <li className="notebook-cell">
      <header>
        <span className="notebook-number">{cell.observation ? `[${cell.id}]` : "[*]"}</span>
        <span className="faint">{cell.subtask ? `delegate since event ${cell.subtask}` : ""}</span>
      </header>
      <Code text={cell.action.code} language="python" />
      <Output session={session} cell={cell} live={live} name={name} />
    </li>
  );
});

function Output({ session, cell, live, name }: { session: SessionStore; cell: Cell; live: string; name: string }) {
  const found = cell.observation;
  if (!found || !isObservation(found)) return live ? <Ansi text={live} label={`${name}: output so far`} /> : null;
  if (found.type !== "IPythonRunCellObservation") {
    return <Ansi text={found.content} label={`${name}: why it was not run`} />;
  }
  return (
    <>
      {found.content && <Ansi text={found.content} label={`${name}: output`} />}
      <Rest session={session} observation={found} />
      {found.images.map((image, at) =>
        image.blob ? (
          <img
            key={image.blob + String(at)}
            className="notebook-picture"
            src={session.api.blobUrl(image.blob)}
            alt={`${name}: picture ${at + 1} of ${found.images.length}`}
          />
        ) : null,
      )}
      {found.error && <p className="pane-trouble">{found.error}</p>}
      {found.status !== "done" && <p className="faint">{found.status}</p>}
    </>
  );
}
