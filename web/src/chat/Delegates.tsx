/** The delegates of the session: who works below whom, how it stands and what it cost. */

import { type SessionStore, useSessionPart } from "../store";
import { type Branch, dollars, treeOf } from "./delegates";
import { exact, shortName, words } from "./text";

export function Delegates({ store, onShow }: { store: SessionStore; onShow: (event: number) => void }) {
  const subtasks = useSessionPart(store, (now) => now.subtasks);
  if (subtasks.size === 0) return null;
  const working = [...subtasks.values()].filter((subtask) => subtask.state === "running").length;
  return (
    <details className="chat-delegates">
      <summary>
        {subtasks.size} {subtasks.size === 1 ? "delegate" : "delegates"}
        {working > 0 && `, ${working} at work`}
      </summary>
      <Branches branches={treeOf(subtasks)} onShow={onShow} />
    </details>
  );
}

function Branches({ branches, onShow }: { branches: Branch[]; onShow: (event: number) => void }) {
  return (
    <ul>
      {branches.map(({ subtask, below, cost }) => (
        <li key={subtask.id}>
          <button type="button" className="chat-delegate" onClick={() => onShow(subtask.id)}>
            <strong>{exact(shortName(subtask.agent))}</strong>
            <span className={`chat-ending ${tone(subtask.state)}`}>{words(subtask.state)}</span>
            <span className="chat-quiet">
              {subtask.iterations} {subtask.iterations === 1 ? "step" : "steps"} · {dollars(cost)}
            </span>
            <span className="chat-task">{exact(subtask.task.split("\n")[0] ?? "")}</span>
          </button>
          {below.length > 0 && <Branches branches={below} onShow={onShow} />}
        </li>
      ))}
    </ul>
  );
}

function tone(state: string): string {
  if (state === "finished") return "good";
  if (state === "error" || state === "rejected") return "bad";
  return state === "running" ? "busy" : "warn";
}
