// One session in the page: its state, a window of its events, and live output.

import { useSyncExternalStore } from "react";
import { sessionApi, type SessionApi } from "./api";
import type { EventRecord } from "./events";
import { cardsOf, subtasksOf, type Card, type Subtask } from "./fold";
import { Follower, type Connect, type LiveOutput } from "./eventStream";
import { afterEvent, withPiece, NOTHING, type Live } from "./live";
import type { EventPage, SessionRow, SessionView } from "../generated/types";

export const PAGE = 200;
/** The most events kept; those furthest from the reader are dropped, and loaded again when needed. */
export const WINDOW = 2000;
const FLUSH = 30;
/** Milliseconds to wait for the first state before the session is shown with its row of the list. */
const HEAD_START = 100;

/** The state of a session before the server sends it; the list's row has the rest. */
export const EMPTY: Omit<SessionView, keyof SessionRow> = {
  reason: null,
  why: "",
  sandbox: "",
  base_url: null,
  limits: { iterations: null, cost: null, tokens: null, time: null },
  confirmation: "never",
  iterations: 0,
  usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 },
  cost: { usd: 0, unpriced: 0, sources: [] },
  time: 0,
  plan: [],
  subtasks: [],
  asked: [],
  rules: [],
  network: [],
  refused: [],
  plan_mode: false,
  outputs: {},
  run_by: null,
};

interface Snapshot {
  info: SessionView;
  subtasks: Map<number, Subtask>;
  cards: Card[];
  /** The loaded window, ascending: ids `first` to `last`; `head` is the newest id there is. */
  events: EventRecord[];
  first: number;
  last: number;
  head: number;
  live: Live;
  /** The number of applies and undos in this page: each changes the user's folder, of which the log says nothing. */
  applies: number;
  /** The number of changes that this page made to the session's files: the log says nothing of them either. */
  edits: number;
  connected: boolean;
  /** The reason why the session cannot be followed, for example that it was deleted; "" while it can. */
  problem: string;
}

type Message = { event: EventRecord } | { piece: LiveOutput } | { info: SessionView };

export class SessionStore {
  private current: Snapshot;
  private readonly listeners = new Set<() => void>();
  private readonly follower: Follower;
  private queue: Message[] = [];
  private flushTimer: ReturnType<typeof setTimeout> | undefined;
  private readonly hasState: Promise<void>;
  private resolveState: () => void = () => undefined;
  private reading = false;
  private loading: Promise<void> | null = null;
  private closed = false;
  private readonly ending = new AbortController();

  /** Load the newest events and follow the session from there. Throws ApiError. */
  static async open(id: string, connect?: Connect, api: SessionApi = sessionApi(id)): Promise<SessionStore> {
    // Its row is among those of its forks; a search for it would read the texts of all sessions.
    const [page, family] = await Promise.all([api.events({ limit: PAGE }), api.tree()]);
    const row = family.find(({ id }) => id.startsWith(api.id)) ?? (await api.info());
    const store = new SessionStore(api, { ...EMPTY, ...row }, page, connect);
    // The server needs some time for the first state of a long session; the events do not wait for it.
    await Promise.race([store.hasState, new Promise((resolve) => setTimeout(resolve, HEAD_START))]);
    return store;
  }

  private constructor(
    readonly api: SessionApi,
    info: SessionView,
    page: EventPage,
    connect?: Connect,
  ) {
    this.current = {
      info,
      ...windowOf(page.events, [], info),
      head: Math.max(page.head, page.events.at(-1)?.id ?? 0),
      live: NOTHING,
      applies: 0,
      edits: 0,
      connected: false,
      problem: "",
    };
    this.hasState = new Promise((resolve) => (this.resolveState = resolve));
    this.follower = new Follower(
      page.events.at(-1)?.id ?? 0,
      api.followUrl,
      {
        event: (event) => this.enqueue({ event }),
        liveOutput: (piece) => this.enqueue({ piece }),
        state: (info) => this.enqueue({ info }),
        connected: (connected) => this.set(connected ? { connected } : { connected, live: NOTHING }),
        ended: (problem) => this.set({ problem }),
      },
      connect,
    );
    globalThis.addEventListener?.("online", this.online);
  }

  get id(): string {
    return this.api.id;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly snapshot = (): Snapshot => this.current;

  /** Aborted when the session's page is closed. */
  get lifetime(): AbortSignal {
    return this.ending.signal;
  }

  close(): void {
    this.closed = true;
    this.ending.abort();
    clearTimeout(this.flushTimer);
    globalThis.removeEventListener?.("online", this.online);
    this.follower.close();
    this.listeners.clear();
  }

  /** Load the page before the window. */
  older(): Promise<void> {
    return this.load(async () => {
      if (this.current.first <= 1) return;
      const { events } = await this.api.events({ before: this.current.first, limit: PAGE });
      if (events.at(-1)?.id !== this.current.first - 1) return; // the window moved on meanwhile
      this.setWindow([...events, ...this.current.events].slice(0, WINDOW));
    });
  }

  /** Load the page after the window, if newer events were dropped. */
  newer(): Promise<void> {
    return this.load(async () => {
      if (this.current.last >= this.current.head) return;
      const { events } = await this.api.events({ after: this.current.last, limit: PAGE });
      const fresh = events.filter((event) => event.id > this.current.last);
      if (fresh[0]?.id === this.current.last + 1) this.setWindow([...this.current.events, ...fresh].slice(-WINDOW));
    });
  }

  /** Jump to the newest events. */
  latest(): Promise<void> {
    return this.load(async () => {
      if (this.current.last >= this.current.head) return;
      const { events } = await this.api.events({ limit: PAGE });
      this.setWindow(events);
    });
  }

  /** While the user reads older events, new ones do not displace them. */
  setReading(reading: boolean): void {
    this.reading = reading;
  }

  /** Tell the page that the user's folder has changed. */
  folderChanged(): void {
    this.set({ applies: this.current.applies + 1 });
  }

  /** Tell the page that the session's files have changed, or are to be looked at again. */
  filesChanged(): void {
    this.set({ edits: this.current.edits + 1 });
  }

  private readonly online = (): void => this.follower.reconnect();

  /** Load pages one at a time, so that they adjoin. */
  private load(loading: () => Promise<void>): Promise<void> {
    this.loading ??= loading().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private enqueue(message: Message): void {
    this.queue.push(message);
    this.flushTimer ??= setTimeout(() => this.flush(), FLUSH);
  }

  private flush(): void {
    this.flushTimer = undefined;
    const messages = this.queue;
    this.queue = [];
    const events: EventRecord[] = [];
    let { live, info, subtasks } = this.current;
    for (const message of messages) {
      if ("piece" in message) live = withPiece(live, message.piece);
      else if ("info" in message) info = message.info;
      else {
        events.push(message.event);
        live = afterEvent(live, message.event);
      }
    }
    if (info !== this.current.info) {
      subtasks = subtasksOf(this.current.events, info.subtasks);
      this.resolveState();
    }
    this.current = { ...this.current, info, subtasks, live, head: Math.max(this.current.head, events.at(-1)?.id ?? 0) };
    if (events.length > 0) this.append(events);
    else this.set({});
  }

  private append(events: EventRecord[]): void {
    const fresh = events.filter((event) => event.id > this.current.last);
    const room = !this.reading || this.current.events.length + fresh.length <= WINDOW;
    if (!room || (fresh[0] !== undefined && fresh[0].id !== this.current.last + 1)) {
      this.set({}); // the events are beyond the window: newer() or latest() load them
      return;
    }
    const all = [...this.current.events, ...fresh];
    // Drop a quarter at once: a window that moved with every event would never stand still for the reader.
    this.setWindow(all.length > WINDOW ? all.slice(-WINDOW * 0.75) : all);
  }

  private setWindow(events: EventRecord[]): void {
    this.set(windowOf(events, this.current.cards, this.current.info));
  }

  private set(part: Partial<Snapshot>): void {
    if (this.closed) return;
    this.current = { ...this.current, ...part };
    for (const listener of this.listeners) listener();
  }
}

function windowOf(events: EventRecord[], cards: Card[], info: SessionView) {
  return {
    events,
    cards: cardsOf(events, cards),
    subtasks: subtasksOf(events, info.subtasks),
    first: events[0]?.id ?? 0,
    last: events.at(-1)?.id ?? 0,
  };
}

/** The session's snapshot; the component renders again when any of it changes. */
export function useSession(store: SessionStore): Snapshot {
  return useSyncExternalStore(store.subscribe, store.snapshot);
}

/** A part of the snapshot; the component renders again when that part changes. */
export function useSessionPart<T>(store: SessionStore, pick: (snapshot: Snapshot) => T): T {
  return useSyncExternalStore(store.subscribe, () => pick(store.snapshot()));
}
