/** Asks the user to approve an action: shows all of it, the reason for the question, and the rule that could be added. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useShortcuts } from "../keyboard";
import { type SessionStore, useSession } from "../store";
import type { PendingQuestion } from "../../generated/types";
import { describe } from "../wording/actions";
import { exact, shortName } from "../wording/text";
import { ActionBody } from "./ActionBody";

export function QuestionBar({ store }: { store: SessionStore }) {
  const { info, subtasks } = useSession(store);
  const question = info.asked[0];
  if (info.state !== "awaiting_user_confirmation" || question === undefined) return null;
  const { id, subtask } = question.action;
  const agent = subtasks.get(subtask)?.agent ?? info.agent;
  return <Question key={id} store={store} question={question} agent={agent} more={info.asked.length - 1} />;
}

interface Props {
  store: SessionStore;
  question: PendingQuestion;
  agent: string;
  more: number;
}

function Question({ store, question: { action, why, rule }, agent, more }: Props) {
  const [comment, setComment] = useState("");
  const { busy, problem, run } = useAsync();
  const { verb, object } = describe(action);
  const approve = () => run(() => store.api.approve(action.id));
  const remember = () => run(() => store.api.approve(action.id, true));
  const refuse = () => run(() => store.api.refuse(action.id, comment.trim()));
  useShortcuts([
    { keys: "y", label: "Allow the action once", run: approve },
    { keys: "a", label: "Allow the action and similar ones for this session", run: remember },
    { keys: "n", label: "Refuse the action", run: refuse },
  ]);

  return (
    <section className="chat-question" aria-label="The agent needs your approval">
      <h2>
        {exact(shortName(agent))} wants to do this{more > 0 && ` (and ${more} more)`}:
      </h2>
      <div className="chat-asked" tabIndex={0} role="group" aria-label="The action">
        <p>
          <strong>{verb}</strong> {object && <code>{object}</code>}
        </p>
        <ActionBody action={action} whole />
      </div>
      <p>{exact(why)}</p>
      <p className="chat-rule">
        The rule for this session: <code>{ruleText(rule)}</code>
      </p>
      <div className="chat-answers">
        <Button kind="primary" disabled={busy} onClick={approve}>
          Allow once <kbd>y</kbd>
        </Button>
        <Button disabled={busy} onClick={remember}>
          Allow for this session <kbd>a</kbd>
        </Button>
        <form
          onSubmit={(event) => {
            event.preventDefault();
            refuse();
          }}
        >
          <input
            aria-label="Reason to refuse, for the agent"
            placeholder="Reason to refuse"
            value={comment}
            onChange={(event) => setComment(event.target.value)}
          />
          <Button kind="danger" type="submit" disabled={busy}>
            Refuse <kbd>n</kbd>
          </Button>
        </form>
      </div>
      <Problem text={problem} />
    </section>
  );
}

/** A rule of several lines is the action itself, which is shown above. */
function ruleText(rule: string): string {
  return rule.includes("\n") ? `${rule.split(" ")[0]} shown above` : exact(rule);
}
