/** Asks the user about an action: all of it, why it is asked, and what a remembered yes would allow. */

import { useState } from "react";
import { said } from "../api";
import { Button } from "../components/Button";
import { useShortcuts } from "../keyboard";
import { type SessionStore, useSession } from "../store";
import type { PendingQuestion } from "../../generated/types";
import { ActionBody } from "./ActionBody";
import { headline } from "./headline";
import { exact, shortName } from "./text";

export function QuestionBar({ store }: { store: SessionStore }) {
  const { pending, asked, subtasks, info } = useSession(store);
  if (pending === null) return null;
  const agent = subtasks.get(pending.action.subtask)?.agent ?? info.agent;
  return <Question key={pending.action.id} store={store} asked={pending} agent={agent} more={asked.length - 1} />;
}

function Question({
  store,
  asked,
  agent,
  more,
}: {
  store: SessionStore;
  asked: PendingQuestion;
  agent: string;
  more: number;
}) {
  const { action, why, rule } = asked;
  const [comment, setComment] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const { verb, object } = headline(action);

  const answer = async (call: () => Promise<unknown>) => {
    if (busy) return;
    setBusy(true);
    setProblem("");
    try {
      await call();
    } catch (error) {
      setProblem(said(error)); // as when it was answered elsewhere meanwhile
    }
    setBusy(false);
  };
  const yes = () => void answer(() => store.api.approve(action.id, false));
  const always = () => void answer(() => store.api.approve(action.id, true));
  const no = () => void answer(() => store.api.reject(action.id, comment.trim()));
  useShortcuts([
    { keys: "y", does: "Allow what the agent asks about", run: yes },
    { keys: "a", does: "Allow it and its like in this session", run: always },
    { keys: "n", does: "Reject what the agent asks about", run: no },
  ]);

  return (
    <section className="chat-question" aria-label="The agent asks you first">
      <h2>
        {exact(shortName(agent))} wants to do this{more > 0 && ` (and ${more} more)`}:
      </h2>
      <div className="chat-asked" tabIndex={0} role="group" aria-label="The action">
        <p>
          <span className="chat-verb">{verb}</span> {object && <code>{object}</code>}
        </p>
        <ActionBody action={action} whole />
      </div>
      <p className="chat-why">{exact(why)}</p>
      <p className="chat-rule">
        “Yes, and remember” allows from now on, in this session only: <code>{ruleText(rule)}</code>
      </p>
      <div className="chat-answers">
        <Button kind="primary" disabled={busy} onClick={yes}>
          Yes <kbd>y</kbd>
        </Button>
        <Button disabled={busy} onClick={always}>
          Yes, and remember <kbd>a</kbd>
        </Button>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            no();
          }}
        >
          <input
            aria-label="Why not, for the agent to read"
            placeholder="Why not? (for the agent)"
            value={comment}
            onChange={(event) => setComment(event.target.value)}
          />
          <Button kind="danger" type="submit" disabled={busy}>
            No <kbd>n</kbd>
          </Button>
        </form>
      </div>
      {problem && <p role="alert">{exact(problem)}</p>}
    </section>
  );
}

/** A rule of several lines is the action itself, which is shown above. */
function ruleText(rule: string): string {
  return rule.includes("\n") ? `${rule.split(" ")[0]} what is above` : exact(rule);
}
