/** A card of the conversation: an action and its result. */

import { memo } from "react";
import type { ActionRecord, ObservationRecord } from "../events";
import { describe, endingOf } from "../wording/actions";
import { exact, plain } from "../wording/text";
import { ActionBody } from "./ActionBody";
import { Result } from "./Result";
import { Thought } from "./Thought";

/** The most characters shown of streaming output. */
const LIVE = 4000;

interface Props {
  action: ActionRecord;
  observation: ObservationRecord | null;
  thought: string;
  /** The output so far of a running action. */
  live: string;
}

export const Card = memo(function Card({ action, observation, thought, live }: Props) {
  const { verb, object } = describe(action);
  const ending = observation && endingOf(observation);
  if (action.type === "AgentThinkAction") {
    return (
      <>
        {thought && <Thought text={thought} />}
        {observation && <Result observation={observation} />}
      </>
    );
  }
  const label = [verb, object].filter(Boolean).join(" ");
  return (
    <>
      {thought && <Thought text={thought} />}
      <article className={`chat-card ${toneOf(action)}`} aria-label={`${label}, event ${action.id}`}>
        <header>
          <strong>{verb}</strong>
          {object && <code className="chat-object">{object}</code>}
          {ending && <span className={`chat-ending ${ending.tone}`}>{exact(ending.text)}</span>}
          <span className="chat-id">{action.id}</span>
        </header>
        {!isRepeated(action, observation) && <ActionBody action={action} />}
        {observation ? (
          <Result observation={observation} />
        ) : (
          live && <pre className="chat-output">{plain(live.slice(-LIVE))}</pre>
        )}
      </article>
    </>
  );
});

function toneOf(action: ActionRecord): string {
  if (action.type === "AgentFinishAction") return "good";
  return action.type === "AgentRejectAction" ? "bad" : "";
}

/** Whether the result contains the action's body: the edited lines, or the whole plan. */
function isRepeated(action: ActionRecord, observation: ObservationRecord | null): boolean {
  const { type } = observation ?? {};
  return type === "PlanObservation" || (action.type === "FileEditAction" && type === "FileEditObservation");
}
