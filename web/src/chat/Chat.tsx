/** The conversation with the agent: state, plan, delegates, messages and steps, questions, and the composer. */

import { useState } from "react";
import "../styles/chat.css";
import "../styles/steering.css";
import { ForkDialog } from "../fork/ForkDialog";
import type { SessionStore } from "../store";
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
  const [fork, setFork] = useState<number | null>(null);
  return (
    <Folds value={folds}>
      <section className="chat" aria-label="Conversation with the agent">
        <Banner store={session} />
        <PlanStrip store={session} />
        <Delegates store={session} onShow={(id) => setTarget({ event: id })} />
        <Log store={session} target={target} onFork={setFork} />
        <Announcer store={session} />
        <RefusedHosts store={session} />
        <PlanBar store={session} />
        <QuestionBar store={session} />
        <Composer store={session} />
        {fork !== null && <ForkDialog session={session} event={fork} onClose={() => setFork(null)} />}
      </section>
    </Folds>
  );
}
