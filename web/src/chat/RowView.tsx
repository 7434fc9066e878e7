/** One row of the conversation. */

import { memo } from "react";
import { Markdown } from "../components/Markdown";
import type { Of } from "../events";
import { Card } from "./Card";
import { Folded } from "./Folded";
import { Images } from "./Images";
import { Thought } from "./Thought";
import type { Notice } from "./notices";
import type { Row } from "./rows";
import { exact, plain } from "./text";

/** How deep subtasks are indented at most, so that they stay readable. */
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
  const who = event.source === "user" ? "You" : event.source === "agent" ? "Agent" : "Handiwork";
  const prose = (text: string) => <Markdown text={text} />;
  return (
    <article className={`chat-message ${event.source}`} aria-label={`${who}, event ${event.id}`}>
      <header>
        <span className="chat-who">{who}</span>
        <time dateTime={event.timestamp}>{clock(event.timestamp)}</time>
      </header>
      <Folded id={`message-${event.id}`} text={event.content} most={MESSAGE_LINES} show={prose} />
      <Images parts={event.images} about="Picture of the message" />
    </article>
  );
});

const NoticeLine = memo(function NoticeLine({ tone, text }: Notice) {
  return <p className={`chat-notice ${tone}`}>{plain(text)}</p>;
});

function clock(timestamp: string): string {
  return new Date(timestamp).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
}
