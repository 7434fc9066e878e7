/** Unsent messages, kept while other panes or sessions are shown. */

import type { UploadedImage } from "../../generated/types";

export interface Draft {
  text: string;
  images: UploadedImage[];
}

const drafts = new Map<string, Draft>();

export function draftOf(session: string): Draft {
  return drafts.get(session) ?? { text: "", images: [] };
}

export function saveDraft(session: string, draft: Draft): void {
  if (draft.text || draft.images.length) drafts.set(session, draft);
  else drafts.delete(session);
}

/** The pictures pasted or dropped; the browser handles everything else. */
export function picturesIn(transfer: Pick<DataTransfer, "files"> | null): File[] {
  return [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
}
