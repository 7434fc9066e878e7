/** Unsent messages, and the task of a new session, kept while other panes, pages or sessions are shown. */

import { useSyncExternalStore } from "react";
import type { UploadedImage } from "../../generated/types";

export interface Draft {
  text: string;
  images: UploadedImage[];
}

const EMPTY: Draft = { text: "", images: [] };
const drafts = new Map<string, Draft>();
const listeners = new Set<() => void>();

// A reload would lose them, so the browser asks first.
globalThis.addEventListener?.("beforeunload", (event) => {
  if (drafts.size > 0) event.preventDefault();
});

export function draftOf(session: string): Draft {
  return drafts.get(session) ?? EMPTY;
}

/** The draft, also when a composer that is no longer shown changes it. */
export function useDraft(session: string): Draft {
  return useSyncExternalStore(subscribe, () => draftOf(session));
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function saveDraft(session: string, draft: Draft): void {
  if (draft.text || draft.images.length) drafts.set(session, draft);
  else drafts.delete(session);
  for (const listener of listeners) listener();
}

/** The pictures pasted or dropped; the browser handles everything else. */
export function picturesIn(transfer: Pick<DataTransfer, "files"> | null): File[] {
  return [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
}
