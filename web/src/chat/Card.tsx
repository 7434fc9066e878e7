/** A card of the conversation: an action with what came of it. */

import { memo } from "react";
import type { ActionRecord, ObservationRecord } from "../events";
import { ActionBody } from "./ActionBody";
import { Result } from "./Result";
import { Thought } from "./Thought";
import { ending, headline } from "./headline";
import { exact, plain } from "./text";

/** Characters of an output that is still coming which are on the screen. */
const LIVE = 4000;

interface Props {
  action: ActionRecord;
  observation: ObservationRecord | null;
  thought: string;
  /** What it has printed so far, while it runs. */
  live: string;
}

export const Card = memo(function Card({ action, observation, thought, live }: Props) {
  const { verb, object } = headline(action);
  const end = observation && ending(observation);
  if (action.type === "AgentThinkAction") {
    return (
      <>
        {thought && <Thought text={thought} />}
        {observation && <Result observation={observation} />}
      </>
    );
  }
  return (
    <>
      {thought && <Thought text={thought} />}
      <article className={`chat-card ${tone(action)}`} aria-label={`${verb} ${object}, event ${action.id}`}>
        <header>
          <span className="chat-verb">{verb}</span>
          {object && <code className="chat-object">{object}</code>}
          {end && <span className={`chat-ending ${end.tone}`}>{exact(end.text)}</span>}
          <span className="chat-id">{action.id}</span>
        </header>
        {!told(action, observation) && <ActionBody action={action} />}
        {observation ? (
          <Result observation={observation} />
        ) : (
          live && <pre className="chat-output">{plain(live.slice(-LIVE))}</pre>
        )}
      </article>
    </>
  );
});

function tone(action: ActionRecord): string {
  if (action.type === "AgentFinishAction") return "good";
  return action.type === "AgentRejectAction" ? "bad" : "";
}

/** Whether the result says all that was asked for: the lines of an edit with their places, the whole plan. */
function told(action: ActionRecord, observation: ObservationRecord | null): boolean {
  const { type } = observation ?? {};
  return type === "PlanObservation" || (action.type === "FileEditAction" && type === "FileEditObservation");
}
