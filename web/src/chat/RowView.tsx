/** One row of the conversation. */

import { memo, useContext } from "react";
import { Copyable } from "../components/Copyable";
import type { ActionRecord, ObservationRecord, Of } from "../events";
import { FoldedMarkdown } from "./Folded";
import { Columns } from "./folding";
import { Images } from "./Images";
import { Prose } from "./Prose";
import { Result } from "./Result";
import { EventNumber, type Fork, Group, Step } from "./Step";
import { describe } from "../wording/actions";
import { clock } from "../wording/format";
import type { Notice } from "../wording/notices";
import { exact, plain } from "../wording/text";
import type { GroupRow, Row } from "./rows";

/** The deepest indentation of subtasks. */
const DEEPEST = 4;
/** The columns that a level of indentation takes. */
const INDENT = 3;

interface Props {
  row: Row;
  live: string;
  onFork: Fork;
  onOpen: (group: GroupRow, open: boolean) => void;
}

export function RowView(props: Props) {
  const { row } = props;
  const depth = row.kind === "live" ? Number(row.subtask !== 0) : Math.min(row.depth, DEEPEST);
  const grouped = "grouped" in row && row.grouped === true;
  const columns = useContext(Columns) - INDENT * (depth + Number(grouped));
  return (
    <Columns value={columns}>
      <div className={`chat-entry depth-${depth} is-${row.kind} ${grouped ? "is-grouped" : ""}`}>{content(props)}</div>
    </Columns>
  );
}

function content({ row, live, onFork, onOpen }: Props) {
  switch (row.kind) {
    case "message":
      return <Message event={row.event} onFork={onFork} />;
    case "prose":
      return <Prose text={row.text} />;
    case "step": {
      const { action, observation, question, approval } = row;
      return <Step {...{ action, observation, question, approval, live, onFork }} />;
    }
    case "group":
      return <Group group={row} onOpen={(open) => onOpen(row, open)} />;
    case "outcome":
      return <Outcome action={row.action} observation={row.observation} onFork={onFork} />;
    case "notice":
      return <NoticeLine {...row.notice} />;
    case "heading":
      return <h2 className="chat-heading">{exact(row.name)}</h2>;
    case "live":
      return <Prose text={plain(row.text)} />;
  }
}

const Message = memo(function Message({ event, onFork }: { event: Of<"MessageAction">; onFork: Fork }) {
  const author = event.source === "user" ? "You" : event.source === "agent" ? "Agent" : "Handiwork";
  return (
    <article className={`chat-message ${event.source}`} aria-label={`${author}, event ${event.id}`}>
      <header>
        <strong>{author}</strong>
        <time dateTime={event.timestamp}>{clock(event.timestamp)}</time>
        <EventNumber event={event.id} onFork={onFork} />
      </header>
      <Copyable text={event.content} name="the message">
        <FoldedMarkdown id={`message-${event.id}`} text={event.content} />
      </Copyable>
      <Images parts={event.images} label="Picture of the message" />
    </article>
  );
});

interface OutcomeProps {
  action: ActionRecord;
  observation: ObservationRecord | null;
  onFork: Fork;
}

const Outcome = memo(function Outcome({ action, observation, onFork }: OutcomeProps) {
  const { verb, body } = describe(action);
  const tone = action.type === "AgentFinishAction" ? "good" : "bad";
  return (
    <article className={`chat-outcome ${tone}`} aria-label={`${verb}, event ${action.id}`}>
      <header>
        <strong>{verb}</strong>
        <EventNumber event={action.id} onFork={onFork} />
      </header>
      <Prose text={body} />
      {observation && <Result observation={observation} />}
    </article>
  );
});

const NoticeLine = memo(function NoticeLine({ tone, text }: Notice) {
  return <p className={`chat-notice ${tone}`}>{plain(text)}</p>;
});
