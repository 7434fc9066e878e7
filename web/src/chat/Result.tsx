/** What came of an action. */

import { Diff } from "../components/Diff";
import { Markdown } from "../components/Markdown";
import type { ObservationRecord } from "../events";
import { Images } from "./Images";
import { Output } from "./Output";
import { exact, outputsText, shortName, words } from "./text";

export function Result({ observation }: { observation: ObservationRecord }) {
  const { id } = observation;
  switch (observation.type) {
    case "FileEditObservation":
      return <Diff patch={withoutNames(observation.content)} />;
    case "FileWriteObservation":
    case "UserRejectObservation": // why, the answer says
      return null;
    case "FileReadObservation":
    case "OutputReadObservation":
      return <Output id={id} name="what was read" printed={observation} lines={8} />;
    case "IPythonRunCellObservation":
      return (
        <>
          <Output id={id} name="the output" printed={observation} />
          <Images parts={observation.images} about="Picture of the output" />
        </>
      );
    case "BrowserOutputObservation":
      return <Page page={observation} />;
    case "AgentDelegateObservation":
      return (
        <div className="chat-answer">
          <Markdown text={outputsText(observation.outputs) || observation.content} />
        </div>
      );
    case "ForkObservation":
      return <Children fork={observation} />;
    case "ErrorObservation":
      return (
        <div className="chat-bad">
          <Output id={id} name="the error" printed={observation} />
        </div>
      );
    default:
      return <Output id={id} name="the output" printed={observation} />;
  }
}

function Page({ page }: { page: Extract<ObservationRecord, { type: "BrowserOutputObservation" }> }) {
  const picture = page.marked_screenshot ?? page.screenshot;
  return (
    <>
      <p className="chat-page">
        <strong>{exact(page.title || "Untitled page")}</strong> <span>{exact(page.url)}</span>
      </p>
      {page.last_action_error && <p className="chat-bad">{exact(page.last_action_error)}</p>}
      {page.dialog && <p>The page asks: {exact(page.dialog)}</p>}
      {page.messages.map((message, number) => (
        <p key={number}>{exact(message)}</p>
      ))}
      {page.downloads.length > 0 && <p>Downloaded: {exact(page.downloads.join(", "))}</p>}
      {picture && <Images parts={[picture]} about={`Screenshot of ${exact(page.title || page.url)}`} />}
      <Output id={page.id} name="the page as text" printed={page} lines={6} />
    </>
  );
}

function Children({ fork }: { fork: Extract<ObservationRecord, { type: "ForkObservation" }> }) {
  return (
    <ol className="chat-children">
      {fork.outcomes.map((child, number) => (
        <li key={number}>
          <strong>{exact(shortName(child.agent))}</strong> {words(child.outcome)}
          {Object.keys(child.outputs).length > 0 && <Markdown text={outputsText(child.outputs)} />}
          {child.diff && <Diff patch={child.diff} />}
        </li>
      ))}
    </ol>
  );
}

/** The card's first line has the file's name. */
function withoutNames(patch: string): string {
  return patch.replace(/^--- .*\n\+\+\+ .*\n/, "");
}
