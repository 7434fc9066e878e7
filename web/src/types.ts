// The requests and answers of the server's API, as handiwork/server/schemas/sessions.py and file_shapes.py have them.

import type {
  ActionRecord,
  AgentState,
  Confirmation,
  CostSource,
  JsonObject,
  Limits,
  TaskState,
  Usage,
} from "./events";

/** A session as lists show it; `head` is the id of its last event, `parent_event` the last it shares with `parent`. */
export interface SessionRow {
  id: string;
  title: string;
  agent: string;
  model: string;
  workspace: string;
  state: AgentState;
  created: string;
  updated: string;
  parent: string | null;
  parent_event: number;
  head: number;
}

export interface SessionPage {
  sessions: SessionRow[];
  next: string | null;
}

export interface PlanTask {
  id: string;
  goal: string;
  state: TaskState;
  subtasks: PlanTask[];
}

/** A delegate that is at work, as the server knows it. */
export interface WorkingSubtask {
  id: number;
  parent: number;
  agent: string;
  state: AgentState;
  iterations: number;
  cost: number;
  usage: Usage;
  plan: PlanTask[];
}

/** An action that waits for the user's yes; `rule` is what a remembered yes allows from then on. */
export interface Approval {
  action: ActionRecord;
  why: string;
  rule: string;
}

/** `usd` is what is known; `unpriced` counts the calls whose price is not. */
export interface Cost {
  usd: number;
  unpriced: number;
  sources: CostSource[];
}

/** All about a session but its events. `time` is seconds of running, `why` says why it stands still. */
export interface SessionInfo extends SessionRow {
  reason: string | null;
  why: string;
  sandbox: string;
  base_url: string | null;
  limits: Limits;
  confirmation: Confirmation;
  iterations: number;
  usage: Usage;
  cost: Cost;
  time: number;
  plan: PlanTask[];
  subtasks: WorkingSubtask[];
  asked: Approval[];
  rules: string[];
  network: string[];
  outputs: JsonObject;
  run_by: { here: boolean; host: string; pid: number } | null;
}

export interface Image {
  blob: string;
  media_type: "image/png" | "image/jpeg";
}

export interface NewBlob extends Image {
  size: number;
}

/** What is left out is as the user's settings say. */
export interface NewSession {
  task: string;
  workspace: string;
  images?: Image[];
  title?: string;
  agent?: string;
  model?: string;
  base_url?: string;
  limits?: Partial<Limits>;
  confirmation?: Confirmation;
  image?: string;
  allow_net?: string[];
}

export interface Change {
  model?: string;
  base_url?: string;
  limits?: Limits;
  confirmation?: Confirmation;
}

export interface NewFork {
  restore?: "both" | "files" | "conversation";
  agent?: string;
  model?: string;
  base_url?: string;
  message?: string;
}

export interface FileEntry {
  name: string;
  kind: "dir" | "file" | "link";
  size: number;
}

/** Which changes: all, those of the step or turn an event is in, or those between two events. */
export interface DiffQuery {
  of?: "total" | "turn" | "step";
  event?: number;
  first?: number;
  last?: number;
}

export interface FileChange {
  path: string;
  kind: "added" | "modified" | "deleted" | "mode" | "link" | "type";
  binary: boolean;
  added: number;
  deleted: number;
}

export interface DiffAnswer {
  patch: string;
  files: FileChange[];
  first: number | null;
  last: number | null;
}

/** A model, or a provider's models (`NAME` stands for theirs), and whether it can be used as it is. */
export interface ModelInfo {
  name: string;
  ready: boolean;
  about: string;
}

export interface ModelList {
  default: string;
  models: ModelInfo[];
}

export interface ModelChoice {
  model: string;
  base_url: string | null;
}

export interface AgentList {
  default: string;
  agents: { name: string; about: string; package: string }[];
}

export interface SettingsView {
  file: string;
  version: string;
  model: string;
  base_url: string | null;
  agent: string;
  sandbox: string;
  image: string | null;
  allow_net: string[];
  confirmation: Confirmation;
  limits: Limits;
  secrets: string[];
}
