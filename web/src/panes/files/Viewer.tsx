import { useEffect } from "react";

import { Code } from "../../components/Code";
import type { SessionStore } from "../../store";
import { Trouble } from "../common/Notice";
import { bytes } from "../common/say";
import { useLoaded } from "../common/useLoaded";
import { firstOf } from "./firstOf";
import { type Shown, shown } from "./kind";

/** Bytes of a text, and of a picture, that are shown; more would make the page slow. */
const MOST: Record<Shown, number> = { text: 400_000, picture: 20_000_000, neither: 0 };

interface Content {
  path: string;
  kind: Shown;
  text: string;
  picture: string;
  /** Bytes that were loaded; all there are if `whole`. */
  size: number;
  whole: boolean;
}

/** A file of the workspace, now or as it was after an event, to read and to download. */
export function Viewer({
  session,
  path,
  event,
  version,
}: {
  session: SessionStore;
  path: string;
  event: number | null;
  version: unknown;
}) {
  const { value, error, loading } = useLoaded(() => read(session, path, event), [session, path, event, version]);
  useEffect(() => {
    const picture = value?.picture;
    return () => {
      if (picture) URL.revokeObjectURL(picture);
    };
  }, [value]);
  // What another file had is not to be taken for this one's.
  const content = value?.path === path ? value : null;
  return (
    <section className="viewer" aria-label={`File ${path}`} aria-busy={loading}>
      <div className="pane-bar">
        <span className="viewer-path" title={path}>
          {path}
        </span>
        {content?.whole && <span className="faint">{bytes(content.size)}</span>}
        <a className="button plain" href={session.api.files.downloadUrl(path, event)} download>
          Download
        </a>
      </div>
      <Trouble text={error} />
      {content && <Body content={content} />}
    </section>
  );
}

function Body({ content }: { content: Content }) {
  if (content.kind === "neither") return <p className="faint">This is no text: download it to look at it.</p>;
  if (content.size === 0) return <p className="faint">The file is empty.</p>;
  if (content.kind === "picture") {
    if (!content.whole) return <p className="faint">The picture is too large to be shown: download it.</p>;
    return <img className="viewer-picture" src={content.picture} alt={content.path} />;
  }
  return (
    <div className="pane-scroll">
      <Code text={content.text.replace(/\n$/, "")} path={content.path} from={1} />
      {!content.whole && <p className="faint">These are the first {bytes(content.size)}; download it for the rest.</p>}
    </div>
  );
}

async function read(session: SessionStore, path: string, event: number | null): Promise<Content> {
  const answer = await session.api.files.read(path, event);
  const type = answer.headers.get("content-type") ?? "";
  const kind = shown(type);
  const { bytes: found, whole } = await firstOf(answer.body ?? new Blob().stream(), MOST[kind]);
  return {
    path,
    kind,
    // A character that was cut in two at the end is left out.
    text: kind === "text" ? new TextDecoder().decode(found, { stream: true }) : "",
    picture: kind === "picture" && whole ? URL.createObjectURL(new Blob([found], { type })) : "",
    size: found.length,
    whole,
  };
}
