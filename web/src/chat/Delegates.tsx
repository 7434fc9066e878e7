/** The tree of the session's delegates, with their states and costs. */

import { type SessionStore, useSessionPart } from "../store";
import { money, plural } from "../wording/format";
import { stateName } from "../wording/state";
import { exact, shortName } from "../wording/text";
import { type Branch, treeOf } from "./delegates";

export function Delegates({ store, onShow }: { store: SessionStore; onShow: (event: number) => void }) {
  const subtasks = useSessionPart(store, (now) => now.subtasks);
  if (subtasks.size === 0) return null;
  const running = [...subtasks.values()].filter((subtask) => subtask.state === "running").length;
  return (
    <details className="chat-strip chat-delegates">
      <summary>
        <strong>{plural(subtasks.size, "delegate")}</strong>
        {running > 0 && `${running} running`}
      </summary>
      <Branches branches={treeOf(subtasks)} onShow={onShow} />
    </details>
  );
}

function Branches({ branches, onShow }: { branches: Branch[]; onShow: (event: number) => void }) {
  return (
    <ul className="list">
      {branches.map(({ subtask, children, cost }) => (
        <li key={subtask.id}>
          <button type="button" className="row-button chat-delegate" onClick={() => onShow(subtask.id)}>
            <strong>{exact(shortName(subtask.agent))}</strong>
            <span className={`chat-ending ${toneOf(subtask.state)}`}>{stateName(subtask.state)}</span>
            <span className="faint">
              {plural(subtask.iterations, "step")} · {money(cost)}
            </span>
            <span className="grow cut">{exact(subtask.task.split("\n")[0] ?? "")}</span>
          </button>
          {children.length > 0 && <Branches branches={children} onShow={onShow} />}
        </li>
      ))}
    </ul>
  );
}

function toneOf(state: string): string {
  if (state === "finished") return "good";
  if (state === "error" || state === "rejected") return "bad";
  return state === "running" ? "busy" : "warn";
}
