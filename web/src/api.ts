// Every request that the server understands; each gives its answer or throws a Refused.

import { asEvent, type EventRecord, type JsonObject } from "./events";
import type {
  AgentList,
  Demo,
  Diff,
  DiffQuery,
  FileList,
  KeyTaken,
  ModelChoice,
  ModelList,
  NewBlob,
  NewFork,
  NewSession,
  SessionPage,
  SessionView,
  SettingsChange,
  SettingsView,
  Tree,
  UploadedImage,
} from "../generated/types";

/** The request was not carried out; `message` is for people, `status` is HTTP's, 0 where no server answered. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = "Refused";
  }
}

type Query = Record<string, string | number | boolean | null | undefined>;

async function ask(method: string, path: string, query: Query = {}, body?: unknown): Promise<Response> {
  const request: RequestInit = { method };
  if (body instanceof Blob) {
    request.body = body;
    request.headers = { "content-type": "application/octet-stream" };
  } else if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers = { "content-type": "application/json" };
  }
  let answer: Response;
  try {
    answer = await fetch(url(path, query), request);
  } catch {
    throw new Refused(0, "The server does not answer. Is `handiwork serve` still running?");
  }
  if (!answer.ok) throw new Refused(answer.status, await whyNot(answer));
  return answer;
}

async function whyNot(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const said: unknown = JSON.parse(text);
    if (typeof said === "object" && said !== null && "error" in said) return String(said.error);
  } catch {
    // Not the server's own words: what stands between it and us.
  }
  return `the server answered ${answer.status} ${answer.statusText}`;
}

function url(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const rest = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return rest ? `${path}?${rest}` : path;
}

async function json<T>(method: string, path: string, query?: Query, body?: unknown): Promise<T> {
  return (await (await ask(method, path, query, body)).json()) as T;
}

export interface EventsAnswer {
  events: EventRecord[];
  head: number;
}

/** Which events: those after an id, or the newest, or the newest before an id; always ascending. */
export interface EventsQuery {
  after?: number;
  before?: number;
  limit?: number;
}

export interface ListQuery {
  q?: string;
  state?: string;
  before?: string;
  limit?: number;
}

/** What is not about one session. */
export const api = {
  sessions: (query: ListQuery = {}) => json<SessionPage>("GET", "/api/sessions", { ...query }),
  create: (session: NewSession) => json<SessionView>("POST", "/api/sessions", {}, session),
  models: () => json<ModelList>("GET", "/api/models"),
  agents: () => json<AgentList>("GET", "/api/agents"),
  settings: () => json<SettingsView>("GET", "/api/settings"),
  /** Have a model say hello; may take minutes where a local one is fetched first. */
  tryModel: (choice: ModelChoice) => json<{ reply: string; seconds: number }>("POST", "/api/models/try", {}, choice),
  /** Use a provider's key until the server ends; null is the server of a base URL. */
  giveKey: (provider: string | null, key: string) => json<KeyTaken>("POST", "/api/models/key", {}, { provider, key }),
  /** Have new sessions use a model. */
  chooseModel: (choice: ModelChoice) => json<SettingsView>("PATCH", "/api/settings", {}, choice),
  /** Make a small repository with a bug, for a first task. */
  makeDemo: () => json<Demo>("POST", "/api/demo"),
  /** Store a picture (PNG or JPEG) for a message. */
  addBlob: async (picture: Blob): Promise<UploadedImage> => {
    const { blob, media_type } = await json<NewBlob>("POST", "/api/blobs", {}, picture);
    return { blob, media_type };
  },
  blobUrl: (blob: string) => `/api/blobs/${blob}`,
  /** Bytes `offset` to `offset + length` of a blob as text, and how many bytes the whole has. */
  blobText: async (blob: string, offset = 0, length?: number): Promise<{ text: string; size: number }> => {
    const answer = await ask("GET", `/api/blobs/${blob}`, { offset, length });
    return { text: await answer.text(), size: Number(answer.headers.get("x-blob-size")) };
  },
};

/** The calls of one session. */
export function sessionApi(id: string) {
  const at = `/api/sessions/${id}`;
  const post = (what: string, body?: unknown) => json<SessionView>("POST", `${at}/${what}`, {}, body);
  return {
    ...api,
    id,
    info: () => json<SessionView>("GET", at),
    rename: (title: string) => json<SessionView>("PATCH", at, {}, { title }),
    remove: () => json<{ ok: true }>("DELETE", at),
    events: async (query: EventsQuery): Promise<EventsAnswer> => {
      const page = await json<{ events: JsonObject[]; head: number }>("GET", `${at}/events`, { ...query });
      return { events: page.events.map(asEvent), head: page.head };
    },
    followUrl: (after: number) => `${location.origin.replace(/^http/, "ws")}${at}/follow?after=${after}`,
    send: (content: string, images: UploadedImage[] = []) =>
      json<{ event: number }>("POST", `${at}/messages`, {}, { content, images }),
    start: () => post("start"),
    resume: () => post("resume"),
    pause: () => post("pause"),
    interrupt: () => post("interrupt"),
    stop: () => post("stop"),
    rewind: () => post("rewind"),
    approve: (action: number, remember = false, comment = "") =>
      post("approvals", { action, allowed: true, remember, comment }),
    reject: (action: number, comment = "") => post("approvals", { action, allowed: false, comment }),
    change: (change: SettingsChange) => post("settings", change),
    setModel: (model: string, base_url?: string) => post("settings", { model, ...(base_url ? { base_url } : {}) }),
    allowHosts: (hosts: string[]) => post("network", { hosts }),
    diff: (query: DiffQuery = {}) => json<Diff>("GET", `${at}/diff`, { ...query }),
    fork: (how: NewFork) => post("fork", how),
    tree: async () => (await json<Tree>("GET", `${at}/tree`)).sessions,
    files: {
      /** `event` null is now, else as they were after that event. */
      list: async (path = "", event: number | null = null) =>
        (await json<FileList>("GET", `${at}/files`, { path, at: event })).entries,
      read: (path: string, event: number | null = null) => ask("GET", `${at}/files/content`, { path, at: event }),
      upload: (path: string, content: Blob) =>
        json<{ path: string; size: number }>("PUT", `${at}/files/content`, { path }, content),
      downloadUrl: (path: string, event: number | null = null) =>
        url(`${at}/files/content`, { path, at: event, download: true }),
    },
  };
}

export type SessionApi = ReturnType<typeof sessionApi>;

/** What to tell the user about something that was thrown. */
export function said(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
