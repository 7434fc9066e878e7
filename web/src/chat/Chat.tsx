/** The conversation with the agent: state, delegates, messages and actions, questions, and the composer. */

import { useState } from "react";
import "../styles/chat.css";
import "../styles/steering.css";
import type { SessionStore } from "../store";
import { Announcer } from "./Announcer";
import { Banner } from "./Banner";
import { Composer } from "./Composer";
import { Delegates } from "./Delegates";
import { Log } from "./Log";
import { PlanBar } from "../steering/PlanBar";
import { RefusedHosts } from "../steering/RefusedHosts";
import { QuestionBar } from "./Question";
import { Folds } from "./folds";

export default function Chat({ session }: { session: SessionStore }) {
  const [folds] = useState(() => new Map<string, boolean>());
  const [target, setTarget] = useState<{ event: number } | null>(null);
  return (
    <Folds value={folds}>
      <section className="chat" aria-label="Conversation with the agent">
        <Banner store={session} />
        <Delegates store={session} onShow={(id) => setTarget({ event: id })} />
        <Log store={session} target={target} />
        <Announcer store={session} />
        <RefusedHosts store={session} />
        <PlanBar store={session} />
        <QuestionBar store={session} />
        <Composer store={session} />
      </section>
    </Folds>
  );
}
