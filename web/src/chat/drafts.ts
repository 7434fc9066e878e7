/** What the user is writing, kept while other panes or sessions are shown. */

import type { UploadedImage } from "../../generated/types";

export interface Draft {
  text: string;
  images: UploadedImage[];
}

const kept = new Map<string, Draft>();

export function draftOf(session: string): Draft {
  return kept.get(session) ?? { text: "", images: [] };
}

export function keepDraft(session: string, draft: Draft): void {
  if (draft.text || draft.images.length) kept.set(session, draft);
  else kept.delete(session);
}

/** The pictures of what was pasted or dropped; what is no picture is left to the browser. */
export function picturesIn(transfer: Pick<DataTransfer, "files"> | null): File[] {
  return [...(transfer?.files ?? [])].filter((file) => file.type.startsWith("image/"));
}
