import { expect, test, vi } from "vitest";

import { asEvent, type EventRecord } from "../../src/events";
import { PAGE, Pages } from "../../src/panes/timeline/pages";

const log = Array.from({ length: 5000 }, (_, at) =>
  asEvent({ type: at % 1000 === 0 ? "SessionStarted" : "StepStarted", id: at + 1, subtask: 0 }),
);

function pages() {
  const load = vi.fn((after: number, limit: number) => Promise.resolve(log.slice(after, after + limit)));
  const onLoad = vi.fn();
  return { load, onLoad, pages: new Pages(load, onLoad) };
}

test("an event is there after its page was loaded, once", async () => {
  const { load, onLoad, pages: events } = pages();
  expect(events.get(PAGE)).toBeNull();
  expect(events.get(PAGE)).toBeNull();
  await vi.waitFor(() => expect(onLoad).toHaveBeenCalledOnce());
  expect(load).toHaveBeenCalledExactlyOnceWith(0, PAGE);
  expect(events.get(1)?.id).toBe(1);
  expect(events.get(PAGE)?.id).toBe(PAGE);
  expect(events.get(PAGE + 1)).toBeNull();
});

test("a page that was not full is loaded again for an event that came later", async () => {
  const { load, onLoad, pages: events } = pages();
  load.mockResolvedValueOnce(log.slice(0, 3));
  events.get(3);
  await vi.waitFor(() => expect(onLoad).toHaveBeenCalledTimes(1));
  expect(events.get(3)?.id).toBe(3);
  expect(events.get(4)).toBeNull();
  await vi.waitFor(() => expect(events.get(4)?.id).toBe(4));
});

test("a page that could not be loaded is asked for again", async () => {
  const { load, pages: events } = pages();
  load.mockRejectedValueOnce(new Error("no server"));
  expect(events.get(1)).toBeNull();
  await vi.waitFor(() => expect(events.get(1)?.id).toBe(1));
});

test("of many pages that are passed only the last are loaded", async () => {
  const { load, pages: events } = pages();
  for (let id = 1; id < 4000; id += 100) events.get(id);
  await vi.waitFor(() => expect(events.get(3901)?.id).toBe(3901));
  expect(load.mock.calls.map(([after]) => after)).toEqual([16, 17, 18, 19].map((page) => page * PAGE));
});

test("looking back finds the newest that is wanted, not farther than asked", async () => {
  const { pages: events } = pages();
  const started = (event: EventRecord) => event.type === "SessionStarted";
  expect((await events.findLast(3500, started, 5000))?.id).toBe(3001);
  expect((await events.findLast(3001, started, 5000))?.id).toBe(3001);
  expect((await events.findLast(3000, started, 5000))?.id).toBe(2001);
  expect(await events.findLast(3000, started, 900)).toBeNull();
  expect(await events.findLast(0, started, 900)).toBeNull();
});

test("looking back finds an event that came after its page was loaded", async () => {
  const { load, pages: events } = pages();
  load.mockResolvedValueOnce(log.slice(1000, 1003));
  events.get(1003);
  await vi.waitFor(() => expect(events.get(1003)?.id).toBe(1003));
  expect((await events.findLast(1004, (event) => event.type === "StepStarted", 100))?.id).toBe(1004);
});
