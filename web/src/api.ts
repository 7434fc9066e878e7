// The server's API; every call returns its response or throws an ApiError.

import { asEvent, type JsonObject } from "./events";
import type {
  AgentList,
  ApplyPreview,
  ApplyResult,
  ClonedRepository,
  CodeMatches,
  Demo,
  Diff,
  DiffQuery,
  EventPage,
  EventsQuery,
  FileList,
  FolderListing,
  ForgeAccount,
  Hosts,
  KeyTaken,
  ListQuery,
  ModelAnswer,
  ModelDownload,
  ModelKey,
  ModelChoice,
  ModelList,
  NewApply,
  NewBlob,
  NewFork,
  NewPullRequest,
  NewSession,
  OfferedModels,
  OpenPullRequest,
  OpenedPreview,
  Outline,
  PermissionChange,
  PermissionList,
  Ports,
  Posted,
  PullRequestProposal,
  RunView,
  SessionBranch,
  SessionPage,
  SessionView,
  SettingsChange,
  SettingsView,
  Success,
  Tree,
  UndoResult,
  Uploaded,
  UploadedImage,
} from "../generated/types";

/** A failed request: `message` is for the user, `status` is HTTP's, or 0 without a response. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
    this.name = "ApiError";
  }
}

type Query = Record<string, string | number | boolean | null | undefined>;

async function send(method: string, path: string, query: Query = {}, body?: unknown): Promise<Response> {
  const request: RequestInit = { method };
  if (body instanceof Blob) {
    request.body = body;
    request.headers = { "content-type": "application/octet-stream" };
  } else if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers = { "content-type": "application/json" };
  }
  let response: Response;
  try {
    response = await fetch(url(path, query), request);
  } catch {
    throw new ApiError(0, "The server does not respond. Is `handiwork serve` running?");
  }
  if (!response.ok) throw new ApiError(response.status, await reasonOf(response));
  return response;
}

async function reasonOf(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error: string };
    if (error) return error;
  } catch {
    // The response is a proxy's, not the server's.
  }
  return `the server responded with ${response.status} ${response.statusText}`;
}

function url(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return search ? `${path}?${search}` : path;
}

function socketUrl(path: string, query: Query = {}): string {
  return location.origin.replace(/^http/, "ws") + url(path, query);
}

async function json<T>(method: string, path: string, query?: Query, body?: unknown): Promise<T> {
  return (await (await send(method, path, query, body)).json()) as T;
}

/** Calls that concern no single session. */
export const api = {
  sessions: (query: ListQuery = {}) => json<SessionPage>("GET", "/api/sessions", { ...query }),
  /** The address of the WebSocket that follows the list of sessions. */
  listUrl: () => socketUrl("/api/follow"),
  create: (session: NewSession) => json<SessionView>("POST", "/api/sessions", {}, session),
  folders: (path = "") => json<FolderListing>("GET", "/api/folders", { path }),
  /** Clone a git repository; a large one takes minutes. */
  clone: (url: string) => json<ClonedRepository>("POST", "/api/clones", {}, { url }),
  models: () => json<ModelList>("GET", "/api/models"),
  agents: () => json<AgentList>("GET", "/api/agents"),
  settings: () => json<SettingsView>("GET", "/api/settings"),
  /** Download a local model: the first call begins, and every call returns how far it is. */
  fetchModel: (model: string) => json<ModelDownload>("POST", "/api/models/fetch", {}, { model }),
  /** Try a model. */
  tryModel: (choice: ModelChoice) => json<ModelAnswer>("POST", "/api/models/try", {}, choice),
  /** The models that a provider, or the server at a base URL, offers. */
  offeredModels: (provider: string, baseUrl: string) =>
    json<OfferedModels>("GET", "/api/models/offered", { provider, base_url: baseUrl }),
  /** Use the key of a provider or of the server at a base URL until Handiwork stops, or keep it. */
  setKey: (key: ModelKey) => json<KeyTaken>("POST", "/api/models/key", {}, key),
  /** Set the model of new sessions. */
  chooseModel: (choice: ModelChoice) => json<SettingsView>("PATCH", "/api/settings", {}, choice),
  /** The run of an evaluation that the server shows, with all rollouts or that of one session. */
  evaluation: (session = "") => json<RunView>("GET", "/api/evaluation", { session }),
  /** Create a small repository with a bug, for a first task. */
  createDemo: () => json<Demo>("POST", "/api/demo"),
  /** Store a picture (PNG or JPEG) for a message. */
  addBlob: async (picture: Blob): Promise<UploadedImage> => {
    const { blob, media_type } = await json<NewBlob>("POST", "/api/blobs", {}, picture);
    return { blob, media_type };
  },
  blobUrl: (blob: string) => `/api/blobs/${blob}`,
  /** Return bytes `offset` to `offset + length` of a blob. */
  readBlob: async (blob: string, offset: number, length: number) =>
    (await send("GET", `/api/blobs/${blob}`, { offset, length })).arrayBuffer(),
};

/** Calls that concern one session. */
export function sessionApi(id: string) {
  const base = `/api/sessions/${id}`;
  const post = (command: string, body?: unknown) => json<SessionView>("POST", `${base}/${command}`, {}, body);
  return {
    ...api,
    id,
    info: () => json<SessionView>("GET", base),
    rename: (title: string) => json<SessionView>("PATCH", base, {}, { title }),
    /** Leave the session out of the list, or list it again. */
    archive: (archived = true) => json<SessionView>("PATCH", base, {}, { archived }),
    remove: () => json<Success>("DELETE", base),
    events: async (query: EventsQuery): Promise<EventPage> => {
      const page = await json<{ events: JsonObject[]; head: number }>("GET", `${base}/events`, { ...query });
      return { ...page, events: page.events.map(asEvent) };
    },
    outline: (after: number) => json<Outline>("GET", `${base}/outline`, { after }),
    followUrl: (after: number) => socketUrl(`${base}/follow`, { after }),
    /** The WebSocket of a new terminal in the sandbox; `start` starts a sandbox that does not run. */
    terminalUrl: (rows: number, columns: number, start: boolean) =>
      socketUrl(`${base}/terminal`, { rows, columns, start }),
    /** Send a message, which waits for the end of the agent's current actions unless it interrupts them. */
    send: (content: string, images: UploadedImage[] = [], interrupt = false) =>
      json<Posted>("POST", `${base}/messages`, {}, { content, images, interrupt }),
    acceptPlan: (comment = "") => post("plan/accept", { comment }),
    allowHosts: (hosts: Hosts) => post("network", hosts),
    permissions: {
      list: () => json<PermissionList>("GET", `${base}/permissions`),
      keep: (change: PermissionChange) => json<PermissionList>("POST", `${base}/permissions/keep`, {}, change),
      revoke: (change: PermissionChange) => json<PermissionList>("POST", `${base}/permissions/revoke`, {}, change),
    },
    resume: () => post("resume"),
    interrupt: () => post("interrupt"),
    stop: () => post("stop"),
    rewind: () => post("rewind"),
    approve: (action: number, remember = false) => post("approvals", { action, allowed: true, remember }),
    refuse: (action: number, comment = "") => post("approvals", { action, allowed: false, comment }),
    changeSettings: (change: SettingsChange) => post("settings", change),
    diff: (query: DiffQuery = {}) => json<Diff>("GET", `${base}/diff`, { ...query }),
    /** Take back a hunk, or with null all changes of the file. */
    reject: (path: string, hunk: string | null) => json<Uploaded>("POST", `${base}/diff/reject`, {}, { path, hunk }),
    apply: {
      preview: () => json<ApplyPreview>("GET", `${base}/apply`),
      run: (resolutions: NonNullable<NewApply["resolutions"]>) =>
        json<ApplyResult>("POST", `${base}/apply`, {}, { resolutions }),
      undo: () => json<UndoResult>("POST", `${base}/apply/undo`),
    },
    pullRequest: {
      propose: () => json<PullRequestProposal>("GET", `${base}/pull-request`),
      /** Push the branch and open the request; a large push takes minutes. */
      open: (request: NewPullRequest) => json<OpenPullRequest>("POST", `${base}/pull-request`, {}, request),
      setToken: (token: string, keep: boolean) =>
        json<ForgeAccount>("POST", `${base}/pull-request/token`, {}, { token, keep }),
    },
    branch: () => json<SessionBranch>("POST", `${base}/branch`),
    patchUrl: `${base}/patch`,
    fork: (fork: NewFork) => post("fork", fork),
    tree: async () => (await json<Tree>("GET", `${base}/tree`)).sessions,
    /** The ports on which programs in the sandbox listen. */
    ports: async () => (await json<Ports>("GET", `${base}/ports`)).ports,
    preview: (port: number) => json<OpenedPreview>("POST", `${base}/previews`, {}, { port }),
    files: {
      /** The files after an event; null means the current ones. */
      list: async (path = "", event: number | null = null) =>
        (await json<FileList>("GET", `${base}/files`, { path, at: event })).entries,
      read: (path: string, event: number | null = null) => send("GET", `${base}/files/content`, { path, at: event }),
      /** Search the code of the current files. */
      search: (query: string) => json<CodeMatches>("GET", `${base}/code`, { query }),
      upload: (path: string, content: Blob) => json<Uploaded>("PUT", `${base}/files/content`, { path }, content),
      downloadUrl: (path: string, event: number | null = null) =>
        url(`${base}/files/content`, { path, at: event, download: true }),
    },
  };
}

export type SessionApi = ReturnType<typeof sessionApi>;

/** Whether a key is not used because it could not be tested. */
export function isUntested(error: unknown): boolean {
  return error instanceof ApiError && error.status === 502;
}

/** The user's message for anything thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
