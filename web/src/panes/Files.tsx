import { type DragEvent, useRef, useState } from "react";

import { errorMessage } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import type { SessionStore } from "../store";
import type { CodeMatch } from "../../generated/types";
import { useLoaded } from "../components/useLoaded";
import { useFilesVersion } from "./common/useFilesVersion";
import { CodeMatchList, CodeSearch } from "./files/CodeSearch";
import { FileBrowser } from "./files/FileBrowser";
import { joined } from "./files/kind";
import { exists, NewFile } from "./files/NewFile";
import { useTree } from "./files/useTree";

/** The current files of the workspace, to search, read, download and upload. */
export default function FilesPane({ session }: { session: SessionStore }) {
  const version = useFilesVersion(session);
  const tree = useTree(session, null, version);
  const [directory, setDirectory] = useState("");
  const [chosen, setChosen] = useState<string | null>(null);
  const [match, setMatch] = useState<CodeMatch | null>(null);
  const [query, setQuery] = useState("");
  const found = useLoaded(async () => (query ? session.api.files.search(query) : null), [session, query, version]);
  const [naming, setNaming] = useState(false);
  const [status, setStatus] = useState("");
  const [problem, setProblem] = useState("");
  const input = useRef<HTMLInputElement>(null);
  const upload = async (files: File[]) => {
    setProblem("");
    const problems: string[] = [];
    for (const file of files) {
      const path = joined(directory, file.name);
      try {
        if ((await exists(session, path)) && !confirm(`${path} exists. Replace it?`)) continue;
        setStatus(`Uploading ${file.name}…`);
        await session.api.files.upload(path, file);
        setStatus(`Uploaded ${path}.`);
      } catch (error) {
        setStatus("");
        problems.push(`${file.name}: ${errorMessage(error)}`);
      }
    }
    setProblem(problems.join(" "));
    session.filesChanged();
  };
  const choose = (path: string, isDirectory: boolean) => {
    setDirectory(isDirectory ? path : path.slice(0, Math.max(0, path.lastIndexOf("/"))));
    if (!isDirectory) setChosen(path);
    setMatch(null);
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
        <Button onClick={() => session.filesChanged()}>Reload</Button>
        <span className="faint" role="status">
          {status}
        </span>
      </div>
      <Problem text={problem} />
      <CodeSearch
        found={found.value}
        busy={query !== "" && found.loading}
        problem={found.problem}
        onSearch={setQuery}
      />
      {naming && (
        <NewFile
          session={session}
          directory={directory}
          onCreate={(path) => {
            session.filesChanged();
            choose(path, false);
          }}
          onClose={() => setNaming(false)}
        />
      )}
      <FileBrowser
        session={session}
        tree={tree}
        event={null}
        version={version}
        chosen={chosen}
        lines={match}
        onChoose={choose}
      >
        {found.value && (
          <CodeMatchList
            matches={found.value.matches}
            chosen={match}
            onChoose={(next) => {
              choose(next.path, false);
              setMatch({ ...next });
            }}
          />
        )}
      </FileBrowser>
    </div>
  );
}
