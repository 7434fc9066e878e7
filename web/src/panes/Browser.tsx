import { useMemo, useState } from "react";

import type { ActionRecord, Of } from "../events";
import type { Card } from "../fold";
import { type SessionStore, useSessionPart } from "../store";
import { LoadEarlier } from "./common/LoadEarlier";
import { PageView } from "./common/PageView";
import { Empty } from "./common/Empty";
import { clock } from "../wording/format";
import { Stepper } from "./common/Stepper";

interface Visit {
  action: ActionRecord;
  page: Of<"BrowserOutputObservation">;
}

/** The browser's page after each of its actions. */
export default function BrowserPane({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const visits = useMemo(() => cards.flatMap(visitsOf), [cards]);
  const running = useMemo(() => cards.findLast((card) => isBrowsing(card.action) && !card.observation), [cards]);
  const [chosen, setChosen] = useState<number | null>(null);
  const position = visits.findIndex(({ page }) => page.id === chosen);
  const index = position < 0 ? visits.length - 1 : position;
  const shown = visits[index];
  return (
    <div className="pane-column">
      <LoadEarlier session={session} noun="pages" />
      {!shown && !running && <Empty>The browser has not been used yet.</Empty>}
      {running && (
        <p className="faint" role="status">
          Running: <code>{codeOf(running.action)}</code>
        </p>
      )}
      {shown && (
        <>
          <div className="pane-bar">
            <Stepper
              index={index}
              count={visits.length}
              noun="page"
              onChange={(next) => setChosen(next === visits.length - 1 ? null : (visits[next]?.page.id ?? null))}
            />
            <span className="faint">
              event {shown.page.id}, {clock(shown.page.timestamp)}
            </span>
          </div>
          <PageView session={session} page={shown.page} action={codeOf(shown.action)} />
        </>
      )}
    </div>
  );
}

function visitsOf(card: Card): Visit[] {
  return card.observation?.type === "BrowserOutputObservation" ? [{ action: card.action, page: card.observation }] : [];
}

function isBrowsing(action: ActionRecord): boolean {
  return action.type === "BrowseURLAction" || action.type === "BrowseInteractiveAction";
}

function codeOf(action: ActionRecord): string {
  if (action.type === "BrowseURLAction") return `goto(${JSON.stringify(action.url)})`;
  return action.type === "BrowseInteractiveAction" ? action.browser_actions : "";
}
