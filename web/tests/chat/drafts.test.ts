import { expect, test } from "vitest";

import { type Draft, draftOf, saveDraft, sendDraft } from "../../src/chat/drafts";

const image = (blob: string) => ({ blob, media_type: "image/png" }) as Draft["images"][number];

test("a draft is empty once it is sent, and what is written before the answer is the next one", async () => {
  saveDraft("one", { text: "Hello", images: [image("a")] });
  let sent: Draft | undefined;
  await sendDraft("one", (draft) => {
    sent = draft;
    expect(draftOf("one")).toEqual({ text: "", images: [] });
    saveDraft("one", { text: "More", images: [] });
    return Promise.resolve();
  });
  expect(sent).toEqual({ text: "Hello", images: [image("a")] });
  expect(draftOf("one")).toEqual({ text: "More", images: [] });
});

test("a draft that could not be sent comes back, before what was written since", async () => {
  saveDraft("two", { text: "Hello", images: [image("a")] });
  const sending = sendDraft("two", () => {
    saveDraft("two", { text: "More", images: [image("b")] });
    return Promise.reject(new Error("no server"));
  });
  await expect(sending).rejects.toThrow("no server");
  expect(draftOf("two")).toEqual({ text: "Hello\nMore", images: [image("a"), image("b")] });
});
