import { type DragEvent, useRef, useState } from "react";

import { errorMessage } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import type { SessionStore } from "../store";
import { useFilesVersion } from "./common/useFilesVersion";
import { FileBrowser } from "./files/FileBrowser";
import { joined } from "./files/kind";
import { NewFile } from "./files/NewFile";
import { useTree } from "./files/useTree";

/** The current files of the workspace, to read, download and upload. */
export default function FilesPane({ session }: { session: SessionStore }) {
  const version = useFilesVersion(session);
  const tree = useTree(session, null, version);
  const [directory, setDirectory] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [naming, setNaming] = useState(false);
  const [status, setStatus] = useState("");
  const [problem, setProblem] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const upload = async (files: File[]) => {
    setProblem("");
    try {
      for (const file of files) {
        setStatus(`Uploading ${file.name}…`);
        const { path } = await session.api.files.upload(joined(directory, file.name), file);
        setStatus(`Uploaded ${path}.`);
      }
    } catch (error) {
      setStatus("");
      setProblem(errorMessage(error));
    }
    tree.reload();
  };
  const choose = (path: string, isDirectory: boolean) => {
    setDirectory(isDirectory ? path : path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    if (!isDirectory) setChosen(path);
  };
  const onDrop = (event: DragEvent) => {
    event.preventDefault();
    void upload([...event.dataTransfer.files]);
  };
  return (
    <div className="pane-column" onDrop={onDrop} onDragOver={(event) => event.preventDefault()}>
      <div className="pane-bar">
        <Button onClick={() => input.current?.click()}>
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
        <Button onClick={() => setNaming(true)}>New file</Button>
        <Button onClick={tree.reload}>Reload</Button>
        <span className="faint" role="status">
          {status}
        </span>
      </div>
      <Problem text={problem} />
      {naming && (
        <NewFile
          session={session}
          directory={directory}
          onCreate={(path) => {
            tree.reload();
            choose(path, false);
          }}
          onClose={() => setNaming(false)}
        />
      )}
      <FileBrowser session={session} tree={tree} event={null} version={version} chosen={chosen} onChoose={choose} />
    </div>
  );
}
