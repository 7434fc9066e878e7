/** The result of an action. */

import { Diff } from "../components/diff/Diff";
import { Markdown } from "../components/Markdown";
import type { ObservationRecord, Of } from "../events";
import { exact, outputsText, shortName, words } from "../wording/text";
import { Images } from "./Images";
import { Output } from "./Output";

export function Result({ observation }: { observation: ObservationRecord }) {
  switch (observation.type) {
    case "FileEditObservation":
      return <Diff patch={withoutNames(observation.content)} path={observation.path} narrow />;
    case "FileWriteObservation":
    case "UserRejectObservation": // the approval event has the reason
      return null;
    case "FileReadObservation":
    case "OutputReadObservation":
      return <Output name="the text" output={observation} rows={8} />;
    case "IPythonRunCellObservation":
    case "RunCodeObservation":
    case "MCPCallObservation":
      return (
        <>
          <Output name="the output" output={observation} />
          <Images parts={observation.images} label="Picture of the output" />
        </>
      );
    case "BrowserOutputObservation":
      return <PageResult page={observation} />;
    case "AgentDelegateObservation":
      return (
        <div className="chat-answer">
          <Markdown text={outputsText(observation.outputs) || observation.content} />
        </div>
      );
    case "ForkObservation":
      return <ForkResult fork={observation} />;
    case "ErrorObservation":
      return (
        <div className="chat-bad">
          <Output name="the error" output={observation} />
        </div>
      );
    default:
      return <Output name="the output" output={observation} />;
  }
}

function PageResult({ page }: { page: Of<"BrowserOutputObservation"> }) {
  const picture = page.marked_screenshot ?? page.screenshot;
  return (
    <>
      <p className="chat-page">
        <strong>{exact(page.title || "Untitled page")}</strong> <span>{exact(page.url)}</span>
      </p>
      {page.last_action_error && <p className="chat-bad">{exact(page.last_action_error)}</p>}
      {page.dialog && <p>Dialog: {exact(page.dialog)}</p>}
      {page.messages.map((message, index) => (
        <p key={index}>{exact(message)}</p>
      ))}
      {page.downloads.length > 0 && <p>Downloaded: {exact(page.downloads.join(", "))}</p>}
      {picture && <Images parts={[picture]} label={`Screenshot of ${exact(page.title || page.url)}`} />}
      <Output name="the page as text" output={page} rows={6} />
    </>
  );
}

function ForkResult({ fork }: { fork: Of<"ForkObservation"> }) {
  return (
    <ol className="chat-children">
      {fork.outcomes.map((child, index) => (
        <li key={index}>
          <strong>{exact(shortName(child.agent))}</strong> {words(child.outcome)}
          {Object.keys(child.outputs).length > 0 && <Markdown text={outputsText(child.outputs)} />}
          {child.diff && <Diff patch={child.diff} narrow />}
        </li>
      ))}
    </ol>
  );
}

/** The card's header has the file's name. */
function withoutNames(patch: string): string {
  return patch.replace(/^--- .*\n\+\+\+ .*\n/, "");
}
