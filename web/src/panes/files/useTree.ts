import { useCallback, useEffect, useState } from "react";

import { said } from "../../api";
import type { SessionStore } from "../../store";
import type { FileEntry } from "../../../generated/types";

export interface Tree {
  directories: ReadonlyMap<string, readonly FileEntry[]>;
  open: ReadonlySet<string>;
  error: string;
  toggle: (path: string, unfold: boolean) => void;
  reload: () => void;
}

/** The workspace's directories, loaded as they are unfolded, and again whenever `version` is another. */
export function useTree(session: SessionStore, event: number | null, version: unknown): Tree {
  const [directories, setDirectories] = useState<ReadonlyMap<string, readonly FileEntry[]>>(new Map());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState("");
  const [again, setAgain] = useState(0);

  useEffect(() => {
    let wanted = true;
    const load = async () => {
      try {
        const known = new Map([["", await session.api.files.list("", event)]]);
        for (const path of [...open].sort()) {
          // A directory that was unfolded may be gone: the rest is still worth showing.
          const entries = await session.api.files.list(path, event).catch(() => null);
          if (entries) known.set(path, entries);
        }
        if (!wanted) return;
        setDirectories(known);
        setError("");
      } catch (problem) {
        if (wanted) setError(said(problem));
      }
    };
    void load();
    return () => {
      wanted = false;
    };
  }, [session, event, version, again, open]);

  const toggle = useCallback((path: string, unfold: boolean) => {
    setOpen((before) => {
      const after = new Set(before);
      if (unfold) after.add(path);
      else after.delete(path);
      return after;
    });
  }, []);
  const reload = useCallback(() => {
    setAgain((before) => before + 1);
  }, []);
  return { directories, open, error, toggle, reload };
}
