/** Pictures of a message, a cell or a page; one opens in full on a click. */

import { useState } from "react";
import { api } from "../api";
import { Dialog } from "../components/Dialog";
import type { Part } from "../events";

export function Images({ parts, about }: { parts: readonly Part[]; about: string }) {
  const [shown, setShown] = useState<number | null>(null);
  const blobs = parts.map((part) => part.blob).filter((blob) => blob !== null);
  if (!blobs.length) return null;
  const name = (number: number) => (blobs.length > 1 ? `${about} ${number + 1}` : about);
  const full = shown === null ? undefined : blobs[shown];
  return (
    <div className="chat-images">
      {blobs.map((blob, number) => (
        <button key={number} type="button" aria-label={`Open ${name(number)}`} onClick={() => setShown(number)}>
          <img src={api.blobUrl(blob)} alt={name(number)} loading="lazy" />
        </button>
      ))}
      {full !== undefined && shown !== null && (
        <Dialog wide title={name(shown)} onClose={() => setShown(null)}>
          <img className="chat-image-full" src={api.blobUrl(full)} alt={name(shown)} />
        </Dialog>
      )}
    </div>
  );
}
