/** The conversation with the agent: state, plan, delegates, messages and steps, questions, and the composer. */

import { useState } from "react";
import { Verdict } from "../evaluation/Verdict";
import "../styles/chat.css";
import "../styles/steering.css";
import { ForkDialog } from "../fork/ForkDialog";
import { type SessionStore, useSessionPart } from "../store";
import { Announcer } from "./Announcer";
import { Banner } from "./Banner";
import { Composer } from "./Composer";
import { Delegates } from "./Delegates";
import { Log } from "./Log";
import { PlanBar } from "../steering/PlanBar";
import { RefusedHosts } from "../steering/RefusedHosts";
import { QuestionBar } from "./Question";
import { PlanStrip } from "./PlanStrip";
import { Folds } from "./folds";

export default function Chat({ session }: { session: SessionStore }) {
  const [folds] = useState(() => new Map<string, boolean>());
  const [target, setTarget] = useState<{ event: number } | null>(null);
  const readOnly = useSessionPart(session, (now) => now.info.read_only);
  const [fork, setFork] = useState<number | null>(null);
  return (
    <Folds value={folds}>
      <section className="chat" aria-label="Conversation with the agent">
        {readOnly ? <Verdict session={session.id} /> : <Banner store={session} />}
        <PlanStrip store={session} />
        <Delegates store={session} onShow={(id) => setTarget({ event: id })} />
        <Log store={session} target={target} onFork={readOnly ? null : setFork} />
        <Announcer store={session} />
        {!readOnly && (
          <>
            <RefusedHosts store={session} />
            <PlanBar store={session} />
            <QuestionBar store={session} />
            <Composer store={session} />
          </>
        )}
        {fork !== null && <ForkDialog session={session} event={fork} onClose={() => setFork(null)} />}
      </section>
    </Folds>
  );
}
