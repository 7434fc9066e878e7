import { useCallback, useEffect, useState } from "react";

import { errorMessage } from "../../api";
import type { SessionStore } from "../../store";
import type { FileEntry } from "../../../generated/types";

export interface Tree {
  directories: ReadonlyMap<string, readonly FileEntry[]>;
  open: ReadonlySet<string>;
  problem: string;
  toggle: (path: string, unfold: boolean) => void;
}

/** The workspace's directories, loaded when unfolded, and again when `version` changes. */
export function useTree(session: SessionStore, event: number | null, version: unknown): Tree {
  const [directories, setDirectories] = useState<ReadonlyMap<string, readonly FileEntry[]>>(new Map());
  const [open, setOpen] = useState<ReadonlySet<string>>(new Set());
  const [problem, setProblem] = useState("");

  useEffect(() => {
    let current = true;
    const load = async () => {
      try {
        const known = new Map([["", await session.api.files.list("", event)]]);
        for (const path of [...open].sort()) {
          // An unfolded directory may be deleted; the others are still shown.
          const entries = await session.api.files.list(path, event).catch(() => null);
          if (entries) known.set(path, entries);
        }
        if (!current) return;
        setDirectories(known);
        setProblem("");
      } catch (error) {
        if (current) setProblem(errorMessage(error));
      }
    };
    void load();
    return () => {
      current = false;
    };
  }, [session, event, version, open]);

  const toggle = useCallback((path: string, unfold: boolean) => {
    setOpen((before) => {
      const after = new Set(before);
      if (unfold) after.add(path);
      else after.delete(path);
      return after;
    });
  }, []);
  return { directories, open, problem, toggle };
}
