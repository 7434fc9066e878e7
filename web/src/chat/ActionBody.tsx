/** The body of an action: its command, code, text, edit or task. */

import { Code } from "../components/code/Code";
import { Copyable } from "../components/Copyable";
import { Diff } from "../components/diff/Diff";
import { Markdown } from "../components/Markdown";
import type { ActionRecord } from "../events";
import { describe } from "../wording/actions";
import { exact, shortName, taskText } from "../wording/text";
import { editPatch } from "./patch";
import { FoldedCode, FoldedMarkdown } from "./Folded";

/** With `whole` nothing is folded, as the user judges the action by it. */
export function ActionBody({ action, whole = false }: { action: ActionRecord; whole?: boolean }) {
  const { body, language } = describe(action);
  const id = `action-${action.id}`;
  switch (action.type) {
    case "FileEditAction":
      return (
        <div className="chat-edit">
          <Diff patch={editPatch(exact(action.old), exact(action.new))} path={action.path} narrow />
        </div>
      );
    case "AgentDelegateAction":
      if (whole) return <pre className="chat-output">{exact(body)}</pre>;
      return <FoldedMarkdown id={id} text={body} />;
    case "ForkAction":
      return (
        <ol className="chat-children">
          {action.children.map(([agent, inputs], index) => (
            <li key={index}>
              <strong>{exact(shortName(agent))}</strong> {exact(taskText(inputs))}
            </li>
          ))}
        </ol>
      );
    case "AgentFinishAction":
    case "AgentRejectAction":
      return <Markdown text={body} />;
    case "AddTaskAction":
      return action.subtasks.length === 0 ? null : (
        <ul>
          {action.subtasks.map((goal, index) => (
            <li key={index}>{exact(goal)}</li>
          ))}
        </ul>
      );
    default: {
      if (!body) return null;
      const code = (text: string) => <Code text={text} language={language} />;
      return (
        <Copyable text={body} name="the code">
          {whole ? code(exact(body)) : <FoldedCode id={id} text={exact(body)} rows={14} render={code} />}
        </Copyable>
      );
    }
  }
}
