/** The field for messages to the agent: Enter sends, Shift+Enter starts a line; pictures are pasted, dropped or chosen. */

import { type ClipboardEvent, type DragEvent, type KeyboardEvent, useEffect, useRef, useState } from "react";
import { errorMessage } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useShortcuts } from "../keyboard";
import { type SessionStore, useSessionPart } from "../store";
import type { AgentState } from "../events";
import type { UploadedImage } from "../../generated/types";
import { type Draft, draftOf, MOST_IMAGES, picturesIn, saveDraft, sendDraft, useDraft } from "./drafts";

export function Composer({ store }: { store: SessionStore }) {
  const state = useSessionPart(store, (now) => now.info.state);
  const interrupted = useSessionPart(store, (now) => now.info.interrupted);
  const draft = useDraft(store.id);
  const [uploading, setUploading] = useState(0);
  const [problem, setProblem] = useState("");
  const sending = useAsync();
  const [over, setOver] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const chooser = useRef<HTMLInputElement>(null);

  // The saved draft, not the drawn one: another composer may be shown by now.
  const change = (next: (before: Draft) => Draft) => saveDraft(store.id, next(draftOf(store.id)));
  useShortcuts([{ keys: "/", label: "Write a message", run: () => field.current?.focus() }]);
  useEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight * 0.4)}px`;
  }, [draft.text]);

  const attach = async (files: File[]) => {
    setProblem("");
    setUploading((count) => count + 1);
    for (const file of files) {
      try {
        const image = await store.api.addBlob(file);
        change((before) => ({ ...before, images: [...before.images, image].slice(0, MOST_IMAGES) }));
      } catch (error) {
        setProblem(`${file.name}: ${errorMessage(error)}`);
      }
    }
    setUploading((count) => count - 1);
  };
  const running = state === "running" && !interrupted;
  const send = (interrupt = false) => {
    if (!draft.text.trim() || uploading > 0) return; // a picture under way belongs to the message
    setProblem("");
    sending.run(async () => {
      await sendDraft(store.id, ({ text, images }) => store.api.send(text.trim(), images, interrupt));
      store.setReading(false);
      void store.latest().catch(() => {});
    });
  };
  const key = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    send(running && (event.ctrlKey || event.metaKey));
  };
  const attachFrom = (event: ClipboardEvent | DragEvent, transfer: DataTransfer | null) => {
    const files = picturesIn(transfer);
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
        event.preventDefault(); // otherwise the browser opens the file instead of the page
        setOver(false);
        attachFrom(event, event.dataTransfer);
      }}
    >
      {draft.images.length > 0 && (
        <Attachments
          store={store}
          images={draft.images}
          remove={(index) =>
            change((before) => ({ ...before, images: before.images.filter((_, other) => other !== index) }))
          }
        />
      )}
      <div className="chat-write">
        <textarea
          ref={field}
          rows={1}
          value={draft.text}
          aria-label="Message"
          placeholder={running ? "Message to the agent, which reads it after its current actions" : hint(state)}
          onChange={(event) => change((before) => ({ ...before, text: event.target.value }))}
          onKeyDown={key}
          onPaste={(event) => attachFrom(event, event.clipboardData)}
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
        {running && draft.text.trim() && (
          <Button
            title="Stop the current action, and give the agent the message at once (Ctrl+Enter)"
            disabled={sending.busy || uploading > 0}
            onClick={() => send(true)}
          >
            Interrupt<span className="chat-wide"> with this</span>
          </Button>
        )}
        <Button
          kind="primary"
          title={running ? "The agent reads it after its current actions" : undefined}
          disabled={sending.busy || uploading > 0 || !draft.text.trim()}
          onClick={() => send()}
        >
          Send
        </Button>
      </div>
      {uploading > 0 && (
        <p role="status" className="faint">
          Uploading pictures …
        </p>
      )}
      <Problem text={problem || sending.problem} />
    </section>
  );
}

function Attachments({
  store,
  images,
  remove,
}: {
  store: SessionStore;
  images: UploadedImage[];
  remove: (index: number) => void;
}) {
  return (
    <ul className="list chat-attachments">
      {images.map((image, index) => (
        <li key={`${image.blob} ${index}`}>
          <img src={store.api.blobUrl(image.blob)} alt={`Picture ${index + 1} of the message`} />
          <Button kind="quiet" label={`Remove picture ${index + 1}`} onClick={() => remove(index)}>
            ✕
          </Button>
        </li>
      ))}
    </ul>
  );
}

function hint(state: AgentState): string {
  if (state === "awaiting_user_input") return "Your answer";
  // A message instead of an answer refuses the action.
  if (state === "awaiting_user_confirmation") return "Or a message, which refuses the action";
  return "Message to the agent";
}
