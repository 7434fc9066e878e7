/** What an action asks for: the command, the code, the text of a file, the task of a delegate. */

import { Code } from "../components/Code";
import { Diff } from "../components/Diff";
import { Markdown } from "../components/Markdown";
import { ownFields, type ActionRecord } from "../events";
import { editPatch } from "./patch";
import { exact, outputsText, said, shortName, taskText } from "./text";
import { Folded } from "./Folded";

/** With `whole` nothing is folded: it is what the user is asked about. */
export function ActionBody({ action, whole = false }: { action: ActionRecord; whole?: boolean }) {
  switch (action.type) {
    case "CmdRunAction":
      return action.command ? <Listing id={action.id} text={action.command} language="bash" whole={whole} /> : null;
    case "IPythonRunCellAction":
      return <Listing id={action.id} text={action.code} language="python" whole={whole} />;
    case "BrowseInteractiveAction":
      return <Listing id={action.id} text={action.browser_actions} language="python" whole={whole} />;
    case "FileWriteAction":
      return <Listing id={action.id} text={action.content} language={extension(action.path)} whole={whole} />;
    case "FileEditAction":
      return (
        <div className="chat-proposal">
          <Diff patch={editPatch(exact(action.old), exact(action.new))} />
        </div>
      );
    case "AgentDelegateAction":
      return <Prose id={action.id} text={taskText(action.inputs)} whole={whole} />;
    case "ForkAction":
      return (
        <ol className="chat-children">
          {action.children.map(([agent, inputs], number) => (
            <li key={number}>
              <strong>{exact(shortName(agent))}</strong> {exact(taskText(inputs))}
            </li>
          ))}
        </ol>
      );
    case "AgentFinishAction":
    case "AgentRejectAction":
      return <Markdown text={outputsText(action.outputs)} />;
    case "AddTaskAction":
      return (
        <>
          <p>{exact(action.goal)}</p>
          {action.subtasks.length > 0 && (
            <ul>
              {action.subtasks.map((goal, number) => (
                <li key={number}>{exact(goal)}</li>
              ))}
            </ul>
          )}
        </>
      );
    default: {
      const own = ownFields(action);
      return own && <Listing id={action.id} text={said(own)} language="json" whole={whole} />;
    }
  }
}

function Listing({ id, text, language, whole }: { id: number; text: string; language: string; whole: boolean }) {
  const listing = (shown: string) => <Code text={shown} language={language} />;
  return whole ? listing(exact(text)) : <Folded id={`doing-${id}`} text={exact(text)} most={14} show={listing} />;
}

function Prose({ id, text, whole }: { id: number; text: string; whole: boolean }) {
  const prose = (shown: string) => <Markdown text={shown} />;
  return whole ? (
    <pre className="chat-output">{exact(text)}</pre>
  ) : (
    <Folded id={`doing-${id}`} text={text} most={10} show={prose} />
  );
}

function extension(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return name.includes(".") ? name.slice(name.lastIndexOf(".") + 1) : "";
}
