// One session as the app knows it: a window of its events, where it stands, and what happens at this moment.

import { useSyncExternalStore } from "react";
import { said, sessionApi, type EventsAnswer, type SessionApi } from "./api";
import type { AgentState, EventRecord, Usage } from "./events";
import { cardsOf, standingAfter, subtasksOf, type Card, type Standing, type Subtask } from "./fold";
import { Follower, type Connect, type Transient } from "./follow";
import { liveAfter, livePiece, NOTHING, type Live } from "./live";
import type { PendingQuestion, Cost, PlanTask, SessionView, SessionRow } from "../generated/types";

export const PAGE = 200;
/** Events that are kept at most; of more, those furthest from what is read are dropped and asked for again. */
export const WINDOW = 2000;
const FLUSH = 30;
const REFRESH = 1000;
/** Milliseconds for which the list's word on a session waits for the whole. */
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

type Waiting = { event: EventRecord } | { piece: Transient };

export class SessionStore {
  private now: Snapshot;
  private readonly listeners = new Set<() => void>();
  private readonly follower: Follower;
  private waiting: Waiting[] = [];
  private flushing: ReturnType<typeof setTimeout> | undefined;
  private refreshing: ReturnType<typeof setTimeout> | undefined;
  private refreshDue = Infinity;
  private changes = 0;
  private reading = false;
  private loading: Promise<void> | null = null;
  private closed = false;

  /** Fetch what is shown first and follow from there. Throws Refused. */
  static async open(id: string, connect?: Connect, api: SessionApi = sessionApi(id)): Promise<SessionStore> {
    // What there is to say of a long session takes the server a while the first time: its events do not wait for it.
    const asked = api.info();
    let listed: SessionView | null = null;
    const row = soon(api).then((found) => (listed = found) ?? asked);
    const [page, info] = await Promise.all([api.events({ limit: PAGE }), Promise.race([asked, row])]);
    const store = new SessionStore(api, info, page, connect);
    if (info === listed) store.update(() => asked);
    return store;
  }

  private constructor(
    readonly api: SessionApi,
    info: SessionView,
    page: EventsAnswer,
    connect?: Connect,
  ) {
    const begun: Standing = { state: info.state, reason: info.reason ?? "", why: info.why };
    const standing = page.events.reduce(standingAfter, begun);
    this.now = {
      ...windowOf(page.events, [], info),
      ...ofInfo(info, standing === begun || standing.state === info.state ? begun : standing),
      head: Math.max(page.head, page.events.at(-1)?.id ?? 0),
      live: NOTHING,
      connected: false,
      problem: "",
    };
    this.follower = new Follower(
      page.events.at(-1)?.id ?? 0,
      api.followUrl,
      {
        event: (event) => this.take({ event }),
        transient: (piece) => this.take({ piece }),
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
    clearTimeout(this.refreshing);
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

  /** Ask the server anew for what is not in the events. */
  refresh(): void {
    this.update(() => this.api.info());
  }

  private update(ask: () => Promise<SessionView>): void {
    this.updated(ask).catch((error: unknown) => {
      if (!this.closed && this.now.connected) console.warn(said(error));
    });
  }

  private async updated(ask: () => Promise<SessionView>): Promise<void> {
    const before = this.changes;
    const info = await ask();
    if (this.closed) return;
    const current = before === this.changes;
    const standing = current ? { state: info.state, reason: info.reason ?? "", why: info.why } : this.now;
    this.set({ ...ofInfo(info, standing), subtasks: subtasksOf(this.now.events, info.subtasks) });
    if (!current) this.refreshIn(FLUSH);
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
    const { state, reason, why } = this.now;
    const before: Standing = { state, reason, why };
    let standing = before;
    let live = this.now.live;
    for (const item of items) {
      if ("piece" in item) {
        live = livePiece(live, item.piece);
        continue;
      }
      events.push(item.event);
      standing = standingAfter(standing, item.event);
      live = liveAfter(live, item.event);
    }
    const last = events.at(-1);
    if (last === undefined) {
      this.set({ live });
      return;
    }
    this.now = { ...this.now, ...standing, live, head: Math.max(this.now.head, last.id) };
    this.now.pending = pendingOf(standing.state, this.now.asked);
    this.append(events);
    const urgent = standing !== before || events.some((event) => event.type === "ApprovalEvent");
    if (urgent) this.changes += 1;
    this.refreshIn(urgent ? FLUSH : REFRESH);
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

  private refreshIn(milliseconds: number): void {
    const due = Date.now() + milliseconds;
    if (due >= this.refreshDue) return;
    clearTimeout(this.refreshing);
    this.refreshDue = due;
    this.refreshing = setTimeout(() => {
      this.refreshDue = Infinity;
      this.refresh();
    }, milliseconds);
  }

  private set(part: Partial<Snapshot>): void {
    if (this.closed) return;
    this.now = { ...this.now, ...part };
    for (const listener of this.listeners) listener();
  }
}

/** Return what the list says of the session, all else being empty; null if that is nothing. */
async function soon(api: SessionApi): Promise<SessionView | null> {
  const [{ sessions }] = await Promise.all([api.sessions({ q: api.id, limit: 10 }), pause(HEAD_START)]);
  const row = sessions.find(({ id }) => id.startsWith(api.id));
  return row === undefined ? null : { ...EMPTY, ...row };
}

const pause = (milliseconds: number) => new Promise((over) => setTimeout(over, milliseconds));

function windowOf(events: EventRecord[], cards: Card[], info: SessionView) {
  return {
    events,
    cards: cardsOf(events, cards),
    subtasks: subtasksOf(events, info.subtasks),
    first: events[0]?.id ?? 0,
    last: events.at(-1)?.id ?? 0,
  };
}

function ofInfo(info: SessionView, { state, reason, why }: Standing) {
  const { plan, usage, cost, asked } = info;
  return { info, plan, usage, cost, asked, state, reason, why, pending: pendingOf(state, asked) };
}

function pendingOf(state: AgentState, asked: PendingQuestion[]): PendingQuestion | null {
  return state === "awaiting_user_confirmation" ? (asked[0] ?? null) : null;
}

/** The session as it is now; the component is drawn again whenever any of it changes. */
export function useSession(store: SessionStore): Snapshot {
  return useSyncExternalStore(store.subscribe, store.snapshot);
}

/** A part of the session that `pick` takes out unchanged; the component is drawn again when that part changes. */
export function useSessionPart<T>(store: SessionStore, pick: (snapshot: Snapshot) => T): T {
  return useSyncExternalStore(store.subscribe, () => pick(store.snapshot()));
}
