/** Pictures of a message, a cell or a page; a click opens one in full size. */

import { useState } from "react";
import { api } from "../api";
import { Dialog } from "../components/Dialog";
import type { Part } from "../events";

export function Images({ parts, label }: { parts: readonly Part[]; label: string }) {
  const [shown, setShown] = useState<number | null>(null);
  const blobs = parts.map((part) => part.blob).filter((blob) => blob !== null);
  if (!blobs.length) return null;
  const name = (index: number) => (blobs.length > 1 ? `${label} ${index + 1}` : label);
  const full = shown === null ? undefined : blobs[shown];
  return (
    <div className="chat-images">
      {blobs.map((blob, index) => (
        <button key={index} type="button" aria-label={`Open ${name(index)}`} onClick={() => setShown(index)}>
          <img src={api.blobUrl(blob)} alt={name(index)} loading="lazy" />
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
