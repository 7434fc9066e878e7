import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EventRecord } from "../src/events";
import { LIVE_LIMIT } from "../src/live";
import { PAGE, SessionStore, WINDOW } from "../src/store";
import { connect, eventOf, Sessions } from "./sessions";

let sessions: Sessions;
let store: SessionStore | null = null;

beforeEach(async () => {
  sessions = await Sessions.start();
});

afterEach(() => {
  store?.close();
  store = null;
  sessions.stop();
});

async function opened(): Promise<SessionStore> {
  store = await SessionStore.open("abc", connect);
  await until(() => sessions.followers === 1);
  return store;
}

const until = (holds: () => boolean) => vi.waitFor(() => expect(holds()).toBe(true), { timeout: 20_000, interval: 10 });

const thought = (id: number): EventRecord => eventOf("AgentThinkAction", id);

/** Events 1 to `count`. */
const many = (count: number): EventRecord[] => Array.from({ length: count }, (_, place) => thought(place + 1));

const idsOf = (events: readonly { id: number }[]) => events.map(({ id }) => id);

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, place) => first + place);

test("the newest page comes first, and what happens from then on follows it", async () => {
  sessions.events = many(500);
  const store = await opened();
  expect(idsOf(store.snapshot().events)).toEqual(range(301, 500));
  expect(sessions.cursors).toEqual([500]);
  sessions.say(thought(501));
  await until(() => store.snapshot().last === 501);
  expect(store.snapshot().cards.at(-1)?.id).toBe(501);
});

test("a server that takes long to say how the session stands does not hold up its events", async () => {
  sessions.events = many(10);
  sessions.info = { ...sessions.info, iterations: 7 };
  sessions.thinking = 1000;
  const store = await opened();
  expect(store.snapshot().last).toBe(10);
  expect(store.snapshot().info).toMatchObject({ title: "a task", iterations: 0 });
  await until(() => store.snapshot().info.iterations === 7);
});

test("a connection that breaks again and again loses and repeats nothing", async () => {
  const store = await opened();
  for (let round = 0; round < 5; round++) {
    sessions.say(...range(round * 40 + 1, round * 40 + 20).map(thought));
    sessions.cut();
    sessions.say(...range(round * 40 + 21, round * 40 + 40).map(thought));
    await until(() => sessions.cursors.length === round + 2 && store.snapshot().connected);
  }
  await until(() => store.snapshot().last === 200);
  expect(idsOf(store.snapshot().events)).toEqual(range(1, 200));
});

test("a server that sends an event twice, or leaves one out, does not mix up the order", async () => {
  const store = await opened();
  sessions.events = many(5);
  sessions.tell(thought(1));
  sessions.tell(thought(1));
  sessions.tell(thought(2));
  sessions.tell(thought(4));
  await until(() => store.snapshot().last === 5);
  expect(idsOf(store.snapshot().events)).toEqual([1, 2, 3, 4, 5]);
  expect(sessions.cursors).toEqual([0, 2]);
});

test("the window stays bounded while thousands of events come", async () => {
  const store = await opened();
  const lengths: number[] = [];
  store.subscribe(() => lengths.push(store.snapshot().events.length, store.snapshot().cards.length));
  for (let from = 1; from <= 10_000; from += 500) {
    sessions.say(...range(from, from + 499).map(thought));
    await until(() => store.snapshot().last === from + 499);
  }
  expect(Math.max(...lengths)).toBeLessThanOrEqual(WINDOW);
  const { first, last, events } = store.snapshot();
  expect(idsOf(events)).toEqual(range(first, last));
});

test("all events can be read back and forth through the window", async () => {
  sessions.events = many(5000);
  const store = await opened();
  while (store.snapshot().first > 1) {
    const { first } = store.snapshot();
    await store.older();
    const snapshot = store.snapshot();
    expect(snapshot.first).toBe(Math.max(1, first - PAGE));
    expect(idsOf(snapshot.events)).toEqual(range(snapshot.first, snapshot.last));
    expect(snapshot.events.length).toBeLessThanOrEqual(WINDOW);
  }
  expect(store.snapshot().head).toBe(5000);
  while (store.snapshot().last < 5000) await store.newer();
  expect(idsOf(store.snapshot().events)).toEqual(range(5001 - WINDOW, 5000));
});

test("what comes while older events are read is not mixed into them, and is there when one goes back", async () => {
  sessions.events = many(WINDOW + 1000);
  const store = await opened();
  store.setReading(true);
  while (store.snapshot().first > 1) await store.older();
  sessions.say(thought(WINDOW + 1001));
  await until(() => store.snapshot().head === WINDOW + 1001);
  expect(idsOf(store.snapshot().events)).toEqual(range(1, WINDOW));
  await store.latest();
  store.setReading(false);
  expect(store.snapshot().last).toBe(WINDOW + 1001);
  sessions.say(thought(WINDOW + 1002));
  await until(() => store.snapshot().last === WINDOW + 1002);
});

test("the state is the server's", async () => {
  const store = await opened();
  expect(store.snapshot().info.state).toBe("running");
  sessions.change({ state: "paused", reason: "user", why: "you paused it", iterations: 7 });
  await until(() => store.snapshot().info.state === "paused");
  expect(store.snapshot().info.iterations).toBe(7);
  expect(store.snapshot().info.why).toBe("you paused it");
});

test("an event that has a state of its own, like that of a plan's task, is not the session's", async () => {
  const store = await opened();
  sessions.say(eventOf("ModifyTaskAction", 1, { task_id: "0", state: "completed" }), thought(2));
  await until(() => store.snapshot().last === 2);
  expect(store.snapshot().events[0]).toMatchObject({ type: "ModifyTaskAction", state: "completed" });
  expect(store.snapshot().info).toMatchObject({ state: "running", title: "a task" });
});

test("the actions that wait for approval are the server's", async () => {
  const action = eventOf("CmdRunAction", 1, { command: "rm -rf build" });
  const store = await opened();
  sessions.say(action);
  sessions.change({ state: "awaiting_user_confirmation", asked: [{ action, why: "", rule: "rm" }] });
  await until(() => store.snapshot().info.asked[0]?.rule === "rm");
  sessions.change({ state: "running", asked: [] });
  await until(() => store.snapshot().info.asked.length === 0 && store.snapshot().info.state === "running");
});

test("a reply and an output are live until their event is there, and never grow without bound", async () => {
  const store = await opened();
  sessions.tell({ transient: "text", after: 0, subtask: 0, text: "Hel" });
  sessions.tell({ transient: "text", after: 0, subtask: 0, text: "lo" });
  await until(() => store.snapshot().live.text === "Hello");
  sessions.say(eventOf("CompletionEvent", 1), eventOf("CmdRunAction", 2));
  await until(() => store.snapshot().live.text === "");
  sessions.tell({ transient: "output", after: 2, action: 2, text: "x".repeat(LIVE_LIMIT) + "end" });
  await until(() => store.snapshot().live.output.get(2)?.endsWith("end") ?? false);
  expect(store.snapshot().live.output.get(2)).toHaveLength(LIVE_LIMIT);
  sessions.say(eventOf("CmdOutputObservation", 3, { cause: 2 }));
  await until(() => store.snapshot().live.output.size === 0);
  expect(store.snapshot().cards[0]?.observation?.id).toBe(3);
});

test("a session that is gone is not asked for again", async () => {
  const store = await opened();
  sessions.refuse = true;
  sessions.cut();
  await until(() => store.snapshot().problem === "no such session");
  expect(store.snapshot().connected).toBe(false);
});
