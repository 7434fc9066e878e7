import { useMemo, useState } from "react";

import type { EventRecord, Of } from "../events";
import type { Card } from "../fold";
import { type SessionStore, useSessionPart } from "../store";
import { View } from "./browser/View";
import { Earlier } from "./common/Earlier";
import { Empty } from "./common/Notice";
import { clock } from "./common/say";
import { Steps } from "./common/Steps";

interface Look {
  action: EventRecord;
  page: Of<"BrowserOutputObservation">;
}

/** What the session's browser showed after each of its actions. */
export default function BrowserPane({ session }: { session: SessionStore }) {
  const cards = useSessionPart(session, (now) => now.cards);
  const looks = useMemo(() => cards.flatMap(look), [cards]);
  const waits = useMemo(() => cards.findLast((card) => browses(card.action) && !card.observation), [cards]);
  const [chosen, setChosen] = useState<number | null>(null);
  const found = looks.findIndex(({ page }) => page.id === chosen);
  const at = found < 0 ? looks.length - 1 : found;
  const shown = looks[at];
  return (
    <div className="pane-column">
      <Earlier session={session} what="pages" />
      {!shown && !waits && <Empty>The browser has not been used yet.</Empty>}
      {waits && (
        <p className="faint" role="status">
          At work: <code>{asked(waits.action)}</code>
        </p>
      )}
      {shown && (
        <>
          <div className="pane-bar">
            <Steps
              at={at}
              count={looks.length}
              what="page"
              choose={(to) => {
                setChosen(to === looks.length - 1 ? null : (looks[to]?.page.id ?? null));
              }}
            />
            <span className="faint">
              event {shown.page.id}, {clock(shown.page.timestamp)}
            </span>
          </div>
          <View session={session} page={shown.page} asked={asked(shown.action)} />
        </>
      )}
    </div>
  );
}

function look(card: Card): Look[] {
  return card.observation?.type === "BrowserOutputObservation" ? [{ action: card.action, page: card.observation }] : [];
}

function browses(action: EventRecord): boolean {
  return action.type === "BrowseURLAction" || action.type === "BrowseInteractiveAction";
}

function asked(action: EventRecord): string {
  if (action.type === "BrowseURLAction") return `goto(${JSON.stringify(action.url)})`;
  return action.type === "BrowseInteractiveAction" ? action.browser_actions : "";
}
