/** A step of the agent in one line, which opens: an action and its result. */

import { memo } from "react";
import type { ActionRecord, ObservationRecord } from "../events";
import { describe } from "../wording/actions";
import { duration } from "../wording/format";
import { noticeOf } from "../wording/notices";
import { exact } from "../wording/text";
import { ActionBody } from "./ActionBody";
import { LiveOutput } from "./Output";
import { Result } from "./Result";
import type { GroupRow } from "./rows";
import { useFold } from "./folds";
import { groupLine, isFoldable, type StepParts, stepLine } from "./steps";

/** Asks how to fork the session at an event; null in a session that can only be read. */
export type Fork = ((event: number) => void) | null;

interface Props extends StepParts {
  /** The output so far of a running action. */
  live: string;
  onFork: Fork;
}

export const Step = memo(function Step({ live, onFork, ...step }: Props) {
  const { action, observation, question, approval } = step;
  const { verb, object, tone, outcome, seconds } = stepLine(step);
  const foldable = isFoldable(step);
  const [open, setOpen] = useFold(`step-${action.id}`, observation === null && tone === "busy");
  const shown = foldable && open;
  // The first line of a command is in the body too.
  const told = shown && !describe(action).object;
  const Object = isProse(action) ? "span" : "code";
  const line = (
    <>
      <span className={`step-sign ${tone}`} aria-hidden="true">
        {SIGNS[tone]}
      </span>
      <strong>{verb}</strong>
      {object && !told && <Object className="step-object cut">{object}</Object>}
      {outcome && <span className={`step-outcome cut ${tone}`}>{outcome}</span>}
      {seconds !== null && <span className="step-time digits">{duration(seconds)}</span>}
    </>
  );
  return (
    <article
      className={`step ${shown ? "open" : ""}`}
      aria-label={`${[verb, object].filter(Boolean).join(" ")}, event ${action.id}`}
    >
      <header>
        {foldable ? (
          <button type="button" className="step-line" aria-expanded={open} onClick={() => setOpen(!open)}>
            {line}
          </button>
        ) : (
          <div className="step-line">{line}</div>
        )}
        <EventNumber event={action.id} onFork={onFork} />
      </header>
      {shown && (
        <div className="step-body">
          {!isRepeated(action, observation) && <ActionBody action={action} />}
          {approval?.allowed && <p className="faint">{exact(noticeOf(approval)?.text ?? "")}</p>}
          {question && !approval && <p className="faint">{exact(noticeOf(question)?.text ?? "")}</p>}
          {observation ? <Result observation={observation} /> : live && <LiveOutput text={live} />}
        </div>
      )}
    </article>
  );
});

const SIGNS = { quiet: "✓", good: "✓", warn: "!", bad: "✕", busy: "●" };

/** Consecutive steps in one line, which opens to a line of each. */
export function Group({ group, onOpen }: { group: GroupRow; onOpen: (open: boolean) => void }) {
  const { text, failed, seconds } = groupLine(group.steps);
  return (
    <div className="step group">
      <header>
        <button type="button" className="step-line" aria-expanded={group.open} onClick={() => onOpen(!group.open)}>
          <span className="step-sign" aria-hidden="true">
            {group.open ? "▾" : "▸"}
          </span>
          <span className="step-object cut">
            <span className="hidden">{group.steps.length} steps: </span>
            {text}
          </span>
          {failed > 0 && <span className="step-outcome bad">{failed} failed</span>}
          <span className="step-time digits">{duration(seconds)}</span>
        </button>
      </header>
    </div>
  );
}

/** The number of a step, which forks the session at the step's end. */
export function EventNumber({ event, onFork }: { event: number; onFork: Fork }) {
  if (onFork === null) return <span className="chat-id digits">{event}</span>;
  return (
    <button
      type="button"
      className="chat-id digits"
      title={`Fork the session after event ${event}`}
      aria-label={`Fork after event ${event}`}
      onClick={() => onFork(event)}
    >
      {event}
    </button>
  );
}

/** Whether the step's line ends with words of people, not of machines. */
function isProse({ type }: ActionRecord): boolean {
  return ["AddTaskAction", "ModifyTaskAction", "AgentFinishAction", "AgentRejectAction"].includes(type);
}

/** Whether the result contains the action's body: the edited lines. */
function isRepeated(action: ActionRecord, observation: ObservationRecord | null): boolean {
  return action.type === "FileEditAction" && observation?.type === "FileEditObservation";
}
