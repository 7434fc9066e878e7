/** The folder of a new session: typed, chosen among those that the server may see, or cloned from an address. */

import { useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";

interface Props {
  value: string;
  known: readonly string[];
  onChange: (path: string) => void;
}

export function FolderField({ value, known, onChange }: Props) {
  const [open, setOpen] = useState<"browse" | "clone" | null>(null);
  const toggle = (panel: "browse" | "clone") => setOpen(open === panel ? null : panel);
  return (
    <>
      <div className="starting-folder">
        <Field label="Folder" hint="On the server's machine. The agent works on a copy of it.">
          <input
            name="workspace"
            value={value}
            required
            list="folders"
            placeholder="/home/you/project"
            spellCheck={false}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
        <Button aria-expanded={open === "browse"} onClick={() => toggle("browse")}>
          Browse
        </Button>
        <Button aria-expanded={open === "clone"} onClick={() => toggle("clone")}>
          Clone
        </Button>
      </div>
      <datalist id="folders">
        {known.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      {open === "browse" && (
        <Browser
          start={value}
          onChoose={(path) => {
            onChange(path);
            setOpen(null);
          }}
        />
      )}
      {open === "clone" && (
        <Cloner
          onCloned={(path) => {
            onChange(path);
            setOpen(null);
          }}
        />
      )}
    </>
  );
}

function Browser({ start, onChoose }: { start: string; onChoose: (path: string) => void }) {
  const [path, setPath] = useState(start.startsWith("/") ? start : "");
  const { value: listing, problem } = useLoaded(() => api.folders(path), [path]);
  return (
    <section className="starting-panel" aria-label="Folders of the server">
      <div className="starting-path">
        <code className="grow">{listing?.path ?? "…"}</code>
        {listing && (
          <Button kind="primary" onClick={() => onChoose(listing.path)}>
            Use this folder
          </Button>
        )}
      </div>
      <Problem text={problem} />
      {problem && <Button onClick={() => setPath("")}>Home folder</Button>}
      <ul className="list">
        {listing?.parent != null && (
          <li>
            <button type="button" className="row-button" onClick={() => setPath(listing.parent ?? "")}>
              ↑ Up
            </button>
          </li>
        )}
        {listing?.folders.map(({ name, repository }) => (
          <li key={name}>
            <button
              type="button"
              className="row-button"
              onClick={() => setPath(`${listing.path.replace(/\/$/, "")}/${name}`)}
            >
              {name} {repository && <span className="faint">git</span>}
            </button>
          </li>
        ))}
      </ul>
      {listing?.folders.length === 0 && <p className="faint">No folders in here.</p>}
    </section>
  );
}

function Cloner({ onCloned }: { onCloned: (path: string) => void }) {
  const [url, setUrl] = useState("");
  const { busy, problem, run } = useAsync();
  const clone = () =>
    run(async () => {
      if (url.trim()) onCloned((await api.clone(url.trim())).workspace);
    });
  return (
    <section className="starting-panel" aria-label="Clone a repository">
      <div className="starting-path">
        <input
          className="grow"
          type="url"
          value={url}
          aria-label="Address of the repository"
          placeholder="https://example.org/owner/project.git"
          spellCheck={false}
          onChange={(event) => setUrl(event.target.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault(); // it would start the session
            clone();
          }}
        />
        <Button disabled={busy || !url.trim()} onClick={clone}>
          {busy ? "Cloning …" : "Clone it"}
        </Button>
      </div>
      <p className="faint">A public repository, by http or https. git runs in a sandbox that reaches its host alone.</p>
      <Problem text={problem} />
    </section>
  );
}
