// One session as the app knows it: a window of its events, where it stands, and what happens at this moment.

import { useSyncExternalStore } from "react";
import { sessionApi, type EventsAnswer, type SessionApi } from "./api";
import type { AgentState, EventRecord, Usage } from "./events";
import { cardsOf, subtasksOf, type Card, type Subtask } from "./fold";
import { Follower, type Connect, type Transient } from "./follow";
import { liveAfter, livePiece, NOTHING, type Live } from "./live";
import type { PendingQuestion, Cost, PlanTask, SessionView, SessionRow } from "../generated/types";

export const PAGE = 200;
/** Events that are kept at most; of more, those furthest from what is read are dropped and asked for again. */
export const WINDOW = 2000;
const FLUSH = 30;
/** Milliseconds to wait for the first state before a session is shown with what the list says of it. */
const HEAD_START = 100;

/** A session of which only what the list says is known. */
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
  outputs: {},
  run_by: null,
};

export interface Snapshot {
  info: SessionView;
  state: AgentState;
  reason: string;
  why: string;
  plan: PlanTask[];
  usage: Usage;
  cost: Cost;
  /** The action that waits for the user's yes; `asked` are all of them. */
  pending: PendingQuestion | null;
  asked: PendingQuestion[];
  subtasks: Map<number, Subtask>;
  cards: Card[];
  /** The loaded window, ascending: ids `first` to `last`; `head` is the newest id there is. */
  events: EventRecord[];
  first: number;
  last: number;
  head: number;
  live: Live;
  connected: boolean;
  /** Why the session cannot be followed any more, like that it was deleted; "" while it can. */
  problem: string;
}

type Waiting = { event: EventRecord } | { piece: Transient } | { info: SessionView };

export class SessionStore {
  private now: Snapshot;
  private readonly listeners = new Set<() => void>();
  private readonly follower: Follower;
  private waiting: Waiting[] = [];
  private flushing: ReturnType<typeof setTimeout> | undefined;
  private readonly hasState: Promise<void>;
  private stateCame: () => void = () => undefined;
  private reading = false;
  private loading: Promise<void> | null = null;
  private closed = false;

  /** Fetch what is shown first and follow from there. Throws Refused. */
  static async open(id: string, connect?: Connect, api: SessionApi = sessionApi(id)): Promise<SessionStore> {
    const [page, { sessions }] = await Promise.all([
      api.events({ limit: PAGE }),
      api.sessions({ q: api.id, limit: 10 }),
    ]);
    const row = sessions.find((one) => one.id.startsWith(api.id));
    const store = new SessionStore(api, row === undefined ? await api.info() : { ...EMPTY, ...row }, page, connect);
    // The first state of a long session takes the server a while: the events do not wait for it.
    await Promise.race([store.hasState, new Promise((over) => setTimeout(over, HEAD_START))]);
    return store;
  }

  private constructor(
    readonly api: SessionApi,
    info: SessionView,
    page: EventsAnswer,
    connect?: Connect,
  ) {
    this.now = {
      ...windowOf(page.events, [], info),
      ...ofInfo(info),
      head: Math.max(page.head, page.events.at(-1)?.id ?? 0),
      live: NOTHING,
      connected: false,
      problem: "",
    };
    this.hasState = new Promise((came) => (this.stateCame = came));
    this.follower = new Follower(
      page.events.at(-1)?.id ?? 0,
      api.followUrl,
      {
        event: (event) => this.take({ event }),
        transient: (piece) => this.take({ piece }),
        state: (info) => this.take({ info }),
        connected: (is) => this.set(is ? { connected: true } : { connected: false, live: NOTHING }),
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

  readonly snapshot = (): Snapshot => this.now;

  close(): void {
    this.closed = true;
    clearTimeout(this.flushing);
    globalThis.removeEventListener?.("online", this.online);
    this.follower.close();
    this.listeners.clear();
  }

  /** Load the page before the window. */
  older(): Promise<void> {
    return this.load(async () => {
      if (this.now.first <= 1) return;
      const { events } = await this.api.events({ before: this.now.first, limit: PAGE });
      if (events.at(-1)?.id !== this.now.first - 1) return; // the window moved on meanwhile
      this.setWindow([...events, ...this.now.events].slice(0, WINDOW));
    });
  }

  /** Load the page after the window, where newer events were dropped. */
  newer(): Promise<void> {
    return this.load(async () => {
      if (this.now.last >= this.now.head) return;
      const { events } = await this.api.events({ after: this.now.last, limit: PAGE });
      const fresh = events.filter((event) => event.id > this.now.last);
      if (fresh[0]?.id === this.now.last + 1) this.setWindow([...this.now.events, ...fresh].slice(-WINDOW));
    });
  }

  /** Show the newest events, however far they are. */
  latest(): Promise<void> {
    return this.load(async () => {
      if (this.now.last >= this.now.head) return;
      const { events } = await this.api.events({ limit: PAGE });
      this.setWindow(events);
    });
  }

  /** Say that the user reads older events: none of those that are loaded are dropped for new ones. */
  setReading(is: boolean): void {
    this.reading = is;
  }

  private readonly online = (): void => this.follower.hurry();

  /** One after the other, so that two pages do not miss each other. */
  private load(loading: () => Promise<void>): Promise<void> {
    this.loading ??= loading().finally(() => {
      this.loading = null;
    });
    return this.loading;
  }

  private take(item: Waiting): void {
    this.waiting.push(item);
    this.flushing ??= setTimeout(() => this.flush(), FLUSH);
  }

  private flush(): void {
    this.flushing = undefined;
    const items = this.waiting;
    this.waiting = [];
    const events: EventRecord[] = [];
    let { live, info } = this.now;
    for (const item of items) {
      if ("piece" in item) live = livePiece(live, item.piece);
      else if ("info" in item) info = item.info;
      else {
        events.push(item.event);
        live = liveAfter(live, item.event);
      }
    }
    const news =
      info === this.now.info ? {} : { ...ofInfo(info), subtasks: subtasksOf(this.now.events, info.subtasks) };
    this.now = { ...this.now, ...news, live, head: Math.max(this.now.head, events.at(-1)?.id ?? 0) };
    if ("info" in news) this.stateCame();
    if (events.length > 0) this.append(events);
    else this.set({});
  }

  private append(events: EventRecord[]): void {
    const fresh = events.filter((event) => event.id > this.now.last);
    const room = !this.reading || this.now.events.length + fresh.length <= WINDOW;
    if (!room || (fresh[0] !== undefined && fresh[0].id !== this.now.last + 1)) {
      this.set({}); // they are beyond the window: newer() or latest() fetch them
      return;
    }
    const all = [...this.now.events, ...fresh];
    // A quarter at once: a window that moved by one event each time would never stand still under the eye.
    this.setWindow(all.length > WINDOW ? all.slice(-WINDOW * 0.75) : all);
  }

  private setWindow(events: EventRecord[]): void {
    this.set(windowOf(events, this.now.cards, this.now.info));
  }

  private set(part: Partial<Snapshot>): void {
    if (this.closed) return;
    this.now = { ...this.now, ...part };
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

function ofInfo(info: SessionView) {
  const { plan, usage, cost, asked, state, why } = info;
  const pending = state === "awaiting_user_confirmation" ? (asked[0] ?? null) : null;
  return { info, plan, usage, cost, asked, state, reason: info.reason ?? "", why, pending };
}

/** The session as it is now; the component is drawn again whenever any of it changes. */
export function useSession(store: SessionStore): Snapshot {
  return useSyncExternalStore(store.subscribe, store.snapshot);
}

/** A part of the session that `pick` takes out unchanged; the component is drawn again when that part changes. */
export function useSessionPart<T>(store: SessionStore, pick: (snapshot: Snapshot) => T): T {
  return useSyncExternalStore(store.subscribe, () => pick(store.snapshot()));
}
