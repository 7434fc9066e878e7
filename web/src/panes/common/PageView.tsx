import { useState } from "react";

import type { Of } from "../../events";
import type { SessionStore } from "../../store";
import { Ansi } from "./Ansi";
import { OutputRest } from "./OutputRest";

type Page = Of<"BrowserOutputObservation">;

/** A page of the browser after an action: tabs, address, the action, messages, and the screenshot. */
export function PageView({ session, page, action }: { session: SessionStore; page: Page; action: string }) {
  const [marks, setMarks] = useState(true);
  const marked = page.marked_screenshot?.blob;
  const blob = (marks && marked) || page.screenshot?.blob;
  return (
    <div className="pane-scroll browser" tabIndex={0} role="region" aria-label={`Page ${page.title || page.url}`}>
      {page.open_pages.length > 1 && <PageTabs page={page} />}
      <div className="browser-address">
        {/* Not a link: the user must not open an untrusted page by accident. */}
        <span className="grow cut browser-url" title={page.url}>
          {page.url}
        </span>
        {marked && (
          <label className="check">
            <input type="checkbox" checked={marks} onChange={(event) => setMarks(event.target.checked)} />
            Marks
          </label>
        )}
      </div>
      {action && (
        <pre className="browser-action" aria-label="The action" tabIndex={0}>
          {action}
        </pre>
      )}
      {page.last_action_error && <p className="error-text">{page.last_action_error}</p>}
      <PageMessages page={page} />
      {blob ? (
        <a className="browser-picture" href={session.api.blobUrl(blob)} target="_blank" rel="noreferrer">
          <img src={session.api.blobUrl(blob)} alt={`Screenshot of ${page.title || page.url}`} />
        </a>
      ) : (
        <p className="faint">No screenshot.</p>
      )}
      <details>
        <summary>The page as text, as the agent reads it</summary>
        <Ansi text={page.content} label="The page as text" />
        <OutputRest observation={page} key={page.id} />
      </details>
    </div>
  );
}

function PageTabs({ page }: { page: Page }) {
  return (
    <ol className="list browser-tabs" aria-label="Open pages">
      {page.open_pages.map((url, index) => (
        <li className="cut" key={index} aria-current={index === page.active_page ? "page" : undefined} title={url}>
          {index === page.active_page && page.title ? page.title : url}
        </li>
      ))}
    </ol>
  );
}

function PageMessages({ page }: { page: Page }) {
  const rows: [string, string[]][] = [
    ["Dialog", page.dialog ? [page.dialog] : []],
    ["Messages to you", page.messages],
    ["Infeasible", page.infeasible ? [page.infeasible] : []],
    ["Downloaded", page.downloads],
    ["Console", page.console],
  ];
  const filled = rows.filter(([, texts]) => texts.length > 0);
  if (filled.length === 0) return null;
  return (
    <dl className="pane-facts">
      {filled.map(([name, texts]) => (
        <div key={name}>
          <dt>{name}</dt>
          {texts.map((text, index) => (
            <dd key={index}>{text}</dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
