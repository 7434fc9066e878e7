// The form of a new session: its fields, the request that it makes, the last one, and templates.

import type { Confirmation, Limits } from "../events";
import type { NewSession } from "../../generated/types";

export const EMPTY = {
  task: "",
  workspace: "",
  model: "",
  base_url: "",
  agent: "",
  image: "",
  confirmation: "",
  mode: "",
  allow_net: "",
  secrets: "",
  iterations: "",
  cost: "",
  tokens: "",
  time: "",
};
export type Form = typeof EMPTY;
export interface Template {
  name: string;
  form: Form;
}

export type FieldOf = (name: keyof Form) => {
  name: string;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
};

const LAST = "handiwork:new-session";
const TEMPLATES = "handiwork:templates";
const LIMITS = ["iterations", "cost", "tokens", "time"] as const satisfies (keyof Limits)[];

/** The fields of the last session but its task. */
export function lastForm(): Partial<Form> {
  return { ...stored<Partial<Form>>(LAST, {}), task: "" };
}

export function rememberForm(form: Form): void {
  store(LAST, { ...form, task: "" });
}

export function templates(): Template[] {
  return stored<Template[]>(TEMPLATES, []);
}

/** Save a template in place of one with its name. */
export function saveTemplate(template: Template): Template[] {
  const others = templates().filter(({ name }) => name !== template.name);
  return store(
    TEMPLATES,
    [...others, template].sort((a, b) => a.name.localeCompare(b.name)),
  );
}

export function deleteTemplate(name: string): Template[] {
  return store(
    TEMPLATES,
    templates().filter((template) => template.name !== name),
  );
}

/** The number of fields that differ from the settings, of those that the form folds away. */
export function optionCount({ task: _task, workspace: _workspace, model: _model, ...options }: Form): number {
  return Object.values(options).filter(Boolean).length;
}

export function requestOf(form: Form): NewSession {
  const { task, workspace, model, base_url, agent, image, confirmation, mode } = form;
  const limits = Object.fromEntries(LIMITS.filter((name) => form[name]).map((name) => [name, Number(form[name])]));
  const hosts = listOf(form.allow_net);
  const secrets = listOf(form.secrets);
  return {
    task,
    workspace: workspace.trim(),
    ...(model && { model: model.trim() }),
    ...(base_url && { base_url: base_url.trim() }),
    ...(agent && { agent }),
    ...(image && { image: image.trim() }),
    ...(confirmation && { confirmation: confirmation as Confirmation }),
    ...(mode && { plan_mode: mode === "plan" }),
    ...(LIMITS.some((name) => form[name]) && { limits }),
    ...(hosts.length > 0 && { allow_net: hosts }),
    ...(secrets.length > 0 && { secrets }),
  };
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
}

function stored<Value>(key: string, missing: Value): Value {
  try {
    return (JSON.parse(localStorage.getItem(key) ?? "null") as Value | null) ?? missing;
  } catch {
    return missing;
  }
}

function store<Value>(key: string, value: Value): Value {
  localStorage.setItem(key, JSON.stringify(value));
  return value;
}
