import { useState } from "react";

import type { Of } from "../../events";
import type { SessionStore } from "../../store";
import { Ansi } from "../common/Ansi";
import { Rest } from "../common/Rest";

type Page = Of<"BrowserOutputObservation">;

/** One page as the browser showed it: its tabs, address, picture, what was done and what came of it. */
export function View({ session, page, asked }: { session: SessionStore; page: Page; asked: string }) {
  const [marks, setMarks] = useState(true);
  const marked = page.marked_screenshot?.blob;
  const blob = (marks && marked) || page.screenshot?.blob;
  return (
    <div className="pane-scroll browser" tabIndex={0} role="region" aria-label={`Page ${page.title || page.url}`}>
      {page.open_pages.length > 1 && <Tabs page={page} />}
      <div className="browser-address">
        {/* Not a link: what an agent found is not to be opened by a slip of the mouse. */}
        <span className="browser-url" title={page.url}>
          {page.url}
        </span>
        {marked && (
          <label className="pane-check">
            <input
              type="checkbox"
              checked={marks}
              onChange={(event) => {
                setMarks(event.target.checked);
              }}
            />
            Marks
          </label>
        )}
      </div>
      {asked && (
        <pre className="browser-action" aria-label="What was done" tabIndex={0}>
          {asked}
        </pre>
      )}
      {page.last_action_error && (
        <p className="pane-trouble" role="note">
          {page.last_action_error}
        </p>
      )}
      <Said page={page} />
      {blob ? (
        <a className="browser-picture" href={session.api.blobUrl(blob)} target="_blank" rel="noreferrer">
          <img src={session.api.blobUrl(blob)} alt={`The window, showing ${page.title || page.url}`} />
        </a>
      ) : (
        <p className="faint">No picture was taken.</p>
      )}
      <details>
        <summary>The page as the agent reads it</summary>
        <Ansi text={page.content} label="The page as text" />
        <Rest session={session} observation={page} key={page.id} />
      </details>
    </div>
  );
}

function Tabs({ page }: { page: Page }) {
  return (
    <ol className="browser-tabs" aria-label="Open pages">
      {page.open_pages.map((url, at) => (
        <li key={at} aria-current={at === page.active_page ? "page" : undefined} title={url}>
          {at === page.active_page && page.title ? page.title : url}
        </li>
      ))}
    </ol>
  );
}

function Said({ page }: { page: Page }) {
  const rows: [string, string[]][] = [
    ["It waits for an answer to", page.dialog ? [page.dialog] : []],
    ["Said to you", page.messages],
    ["Cannot be done", page.infeasible ? [page.infeasible] : []],
    ["Downloaded", page.downloads],
    ["Errors of the page", page.console],
  ];
  const some = rows.filter(([, texts]) => texts.length > 0);
  if (some.length === 0) return null;
  return (
    <dl className="pane-facts">
      {some.map(([name, texts]) => (
        <div key={name}>
          <dt>{name}</dt>
          {texts.map((text, at) => (
            <dd key={at}>{text}</dd>
          ))}
        </div>
      ))}
    </dl>
  );
}
