import { type DragEvent, useRef, useState } from "react";

import { said } from "../api";
import { Button } from "../components/Button";
import type { SessionStore } from "../store";
import { Trouble } from "./common/Notice";
import { useFilesVersion } from "./common/useFilesVersion";
import { FileBrowser } from "./files/FileBrowser";
import { below } from "./files/kind";
import { useTree } from "./files/useTree";

/** The workspace's files as they are now: to read, download, and upload. */
export default function FilesPane({ session }: { session: SessionStore }) {
  const version = useFilesVersion(session);
  const tree = useTree(session, null, version);
  const [directory, setDirectory] = useState("");
  const [outcome, upload] = useUpload(session, directory, tree.reload);
  const input = useRef<HTMLInputElement>(null);
  const dropped = (event: DragEvent) => {
    event.preventDefault();
    void upload([...event.dataTransfer.files]);
  };
  return (
    <div
      className="pane-column"
      onDrop={dropped}
      onDragOver={(event) => {
        event.preventDefault();
      }}
    >
      <div className="pane-bar">
        <Button
          onClick={() => {
            input.current?.click();
          }}
        >
          Upload to {directory ? `${directory}/` : "the workspace"}
        </Button>
        <input
          ref={input}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            void upload([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        <Button onClick={tree.reload}>Reload</Button>
        <span className="faint" role="status">
          {outcome.done}
        </span>
      </div>
      <Trouble text={outcome.problem} />
      <FileBrowser session={session} tree={tree} event={null} version={version} onDirectory={setDirectory} />
    </div>
  );
}

interface Outcome {
  done: string;
  problem: string;
}

function useUpload(
  session: SessionStore,
  directory: string,
  done: () => void,
): [Outcome, (files: File[]) => Promise<void>] {
  const [outcome, setOutcome] = useState<Outcome>({ done: "", problem: "" });
  const upload = async (files: File[]) => {
    try {
      for (const file of files) {
        setOutcome({ done: `Uploading ${file.name}…`, problem: "" });
        const { path } = await session.api.files.upload(below(directory, file.name), file);
        setOutcome({ done: `Uploaded ${path}.`, problem: "" });
      }
    } catch (problem) {
      setOutcome({ done: "", problem: said(problem) });
    }
    done();
  };
  return [outcome, upload];
}
