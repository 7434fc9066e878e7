import { useEffect, useState } from "react";

import { Button } from "../../components/Button";
import { Code, type Lines } from "../../components/code/Code";
import type { SessionStore } from "../../store";
import { Problem } from "../../components/Problem";
import { bytes } from "../../wording/format";
import { useLoaded } from "../../components/useLoaded";
import { Editor } from "./Editor";
import { type Edit, editOf, textOf } from "./edits";
import { firstOf } from "./firstOf";
import { type FileKind, kindOf } from "./kind";

/** The most bytes shown; more would make the page slow. */
const LIMITS: Record<FileKind, number> = { text: 400_000, picture: 20_000_000, binary: 0 };

interface Content {
  path: string;
  kind: FileKind;
  text: string;
  picture: string;
  /** The number of loaded bytes. */
  size: number;
  whole: boolean;
  /** Whether the text is all of the file, and encodes to the same bytes again. */
  editable: boolean;
}

/** A file of the workspace, now or after an event, to read and download; as it is now also to edit. */
export function Viewer({
  session,
  path,
  event,
  version,
  lines,
}: {
  session: SessionStore;
  path: string;
  event: number | null;
  version: unknown;
  /** The lines to scroll to and mark. */
  lines: Lines | null;
}) {
  const [saved, setSaved] = useState(0);
  const [begun, setBegun] = useState<{ path: string; edit: Edit } | null>(null);
  const { value, problem, loading } = useLoaded(
    () => read(session, path, event),
    [session, path, event, version, saved],
  );
  useEffect(() => {
    const picture = value?.picture;
    return () => {
      if (picture) URL.revokeObjectURL(picture);
    };
  }, [value]);
  // The value may still be the previous file's.
  const content = value?.path === path ? value : null;
  const edit = event === null ? (editOf(session.id, path) ?? (begun?.path === path ? begun.edit : null)) : null;
  const close = () => {
    setBegun(null);
    setSaved((count) => count + 1);
  };
  return (
    <section className="viewer" aria-label={`File ${path}`} aria-busy={loading}>
      <div className="pane-bar">
        <span className="mono grow cut" title={path}>
          {path}
        </span>
        {content?.whole && <span className="faint">{bytes(content.size)}</span>}
        {event === null && edit === null && content?.editable && (
          <Button onClick={() => setBegun({ path, edit: { before: content.text, text: content.text } })}>Edit</Button>
        )}
        <a className="button plain" href={session.api.files.downloadUrl(path, event)} download>
          Download
        </a>
      </div>
      <Problem text={problem} />
      {edit ? (
        <Editor key={path} session={session} path={path} edit={edit} lines={lines} onClose={close} />
      ) : (
        content && <FileContent content={content} lines={lines} />
      )}
    </section>
  );
}

function FileContent({ content, lines }: { content: Content; lines: Lines | null }) {
  if (content.kind === "binary") return <p className="faint">A binary file: download it to open it.</p>;
  if (content.size === 0) return <p className="faint">The file is empty.</p>;
  if (content.kind === "picture") {
    if (!content.whole) return <p className="faint">The picture is too large: download it.</p>;
    return <img className="viewer-picture" src={content.picture} alt={content.path} />;
  }
  return (
    <div className="pane-scroll">
      <Code text={content.text.replace(/\n$/, "")} path={content.path} from={1} marked={lines} />
      {!content.whole && <p className="faint">The first {bytes(content.size)}; download the file for the rest.</p>}
    </div>
  );
}

async function read(session: SessionStore, path: string, event: number | null): Promise<Content> {
  const answer = await session.api.files.read(path, event);
  const type = answer.headers.get("content-type") ?? "";
  const kind = kindOf(type);
  const { bytes: data, whole } = await firstOf(answer.body ?? new Blob().stream(), LIMITS[kind]);
  const exact = kind === "text" && whole ? textOf(data) : null;
  return {
    path,
    kind,
    // `stream` leaves out a split character at the end.
    text: exact ?? (kind === "text" ? new TextDecoder().decode(data, { stream: true }) : ""),
    editable: exact !== null,
    picture: kind === "picture" && whole ? URL.createObjectURL(new Blob([data], { type })) : "",
    size: data.length,
    whole,
  };
}
