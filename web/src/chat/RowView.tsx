/** One row of the conversation. */

import { memo } from "react";
import { Markdown } from "../components/Markdown";
import type { Of } from "../events";
import { Card } from "./Card";
import { Folded } from "./Folded";
import { Images } from "./Images";
import { Thought } from "./Thought";
import { clock } from "../wording/format";
import type { Notice } from "../wording/notices";
import { exact, plain } from "../wording/text";
import type { Row } from "./rows";

/** The deepest indentation of subtasks. */
const DEEPEST = 4;
const MESSAGE_LINES = 40;

export function RowView({ row, live }: { row: Row; live: string }) {
  const depth = row.kind === "live" ? Number(row.subtask !== 0) : Math.min(row.depth, DEEPEST);
  return <div className={`chat-entry depth-${depth}`}>{content(row, live)}</div>;
}

function content(row: Row, live: string) {
  switch (row.kind) {
    case "message":
      return <Message event={row.event} />;
    case "card":
      return <Card action={row.action} observation={row.observation} thought={row.thought} live={live} />;
    case "notice":
      return <NoticeLine {...row.notice} />;
    case "heading":
      return <h2 className="chat-heading">{exact(row.name)}</h2>;
    case "live":
      return (
        <div className="chat-live">
          <Thought text={plain(row.text)} />
        </div>
      );
  }
}

const Message = memo(function Message({ event }: { event: Of<"MessageAction"> }) {
  const author = event.source === "user" ? "You" : event.source === "agent" ? "Agent" : "Handiwork";
  return (
    <article className={`chat-message ${event.source}`} aria-label={`${author}, event ${event.id}`}>
      <header>
        <strong>{author}</strong>
        <time dateTime={event.timestamp}>{clock(event.timestamp)}</time>
      </header>
      <Folded
        id={`message-${event.id}`}
        text={event.content}
        limit={MESSAGE_LINES}
        render={(text) => <Markdown text={text} />}
      />
      <Images parts={event.images} label="Picture of the message" />
    </article>
  );
});

const NoticeLine = memo(function NoticeLine({ tone, text }: Notice) {
  return <p className={`chat-notice ${tone}`}>{plain(text)}</p>;
});
