/** Where the user writes to the agent: Enter sends, Shift+Enter is a new line, pictures are pasted, dropped or chosen. */

import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { said } from "../api";
import { Button } from "../components/Button";
import { useShortcuts } from "../keyboard";
import { type SessionStore, useSessionPart } from "../store";
import type { AgentState } from "../events";
import type { UploadedImage } from "../../generated/types";
import { type Draft, draftOf, keepDraft, picturesIn } from "./drafts";

const MOST_IMAGES = 16;

export function Composer({ store }: { store: SessionStore }) {
  const state = useSessionPart(store, (now) => now.state);
  const [draft, setKept] = useState<Draft>(() => draftOf(store.id));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [over, setOver] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);

  const change = (next: (before: Draft) => Draft) =>
    setKept((before) => {
      const after = next(before);
      keepDraft(store.id, after);
      return after;
    });
  useShortcuts([{ keys: "/", does: "Write to the agent", run: () => field.current?.focus() }]);
  useEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [draft.text]);

  const attach = async (files: File[]) => {
    setProblem("");
    for (const file of files) {
      try {
        const image = await store.api.addBlob(file);
        change((before) => ({ ...before, images: [...before.images, image].slice(0, MOST_IMAGES) }));
      } catch (error) {
        setProblem(`${file.name}: ${said(error)}`);
      }
    }
  };
  const send = async () => {
    const content = draft.text.trim();
    if (!content || busy) return;
    setBusy(true);
    setProblem("");
    try {
      await store.api.send(content, draft.images);
      // What was written while it was sent stays.
      change((now) => ({ text: now.text === draft.text ? "" : now.text, images: [] }));
      store.setReading(false);
      void store.latest().catch(() => {});
    } catch (error) {
      setProblem(said(error));
    }
    setBusy(false);
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    void send();
  };
  const take = (event: ClipboardEvent | DragEvent, from: DataTransfer | null) => {
    const files = picturesIn(from);
    if (!files.length) return;
    event.preventDefault();
    void attach(files);
  };

  return (
    <section
      className={`chat-composer ${over ? "over" : ""}`}
      aria-label="Message to the agent"
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault(); // else the browser would leave the page for the file
        setOver(false);
        take(event, event.dataTransfer);
      }}
    >
      {draft.images.length > 0 && (
        <Attached
          store={store}
          images={draft.images}
          remove={(place) => change((before) => ({ ...before, images: before.images.filter((_, at) => at !== place) }))}
        />
      )}
      <div className="chat-write">
        <textarea
          ref={field}
          rows={1}
          value={draft.text}
          aria-label="Message"
          placeholder={hint(state)}
          onChange={(event) => change((before) => ({ ...before, text: event.target.value }))}
          onKeyDown={key}
          onPaste={(event) => take(event, event.clipboardData)}
        />
        <input
          ref={chooser}
          type="file"
          hidden
          multiple
          accept="image/png,image/jpeg"
          onChange={(event) => {
            void attach([...(event.target.files ?? [])]);
            event.target.value = "";
          }}
        />
        <Button title="Add pictures (PNG, JPEG)" onClick={() => chooser.current?.click()}>
          +<span className="chat-wide"> Picture</span>
        </Button>
        <Button kind="primary" disabled={busy || !draft.text.trim()} onClick={() => void send()}>
          Send
        </Button>
      </div>
      {problem && <p role="alert">{problem}</p>}
    </section>
  );
}

function Attached({
  store,
  images,
  remove,
}: {
  store: SessionStore;
  images: UploadedImage[];
  remove: (place: number) => void;
}) {
  return (
    <ul className="chat-attached">
      {images.map((image, place) => (
        <li key={`${image.blob} ${place}`}>
          <img src={store.api.blobUrl(image.blob)} alt={`Picture ${place + 1} to be sent`} />
          <Button kind="quiet" label={`Remove picture ${place + 1}`} onClick={() => remove(place)}>
            ✕
          </Button>
        </li>
      ))}
    </ul>
  );
}

function hint(state: AgentState): string {
  if (state === "running") return "Message while it works";
  if (state === "awaiting_user_input") return "Your answer";
  // A message in the place of an answer turns the action away.
  if (state === "awaiting_user_confirmation") return "Or a message, which rejects it";
  return "A message, and it goes on";
}
