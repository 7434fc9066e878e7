/** Unsent messages, and the task of a new session, kept while other panes, pages or sessions are shown. */

import { useSyncExternalStore } from "react";
import type { UploadedImage } from "../../generated/types";

export interface Draft {
  text: string;
  images: UploadedImage[];
}

/** The most pictures of a message. */
export const MOST_IMAGES = 16;

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

/** Hand the draft to `send`, and give it back, before what was written since, if that fails. */
export async function sendDraft(session: string, send: (draft: Draft) => Promise<unknown>): Promise<void> {
  const sent = draftOf(session);
  saveDraft(session, EMPTY); // at once: another composer may be shown before the answer
  try {
    await send(sent);
  } catch (error) {
    const { text, images } = draftOf(session);
    saveDraft(session, {
      text: [sent.text, text].filter(Boolean).join("\n"),
      images: [...sent.images, ...images].slice(0, MOST_IMAGES),
    });
    throw error;
  }
}

/** The pictures pasted or dropped; the browser handles everything else. */
export function picturesIn(transfer: Pick<DataTransfer, "files"> | null): File[] {
  return [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
}
