import { useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import type { Confirmation } from "../events";
import { go, sessionPath } from "../router";
import { CONFIRMATIONS } from "../steering/confirmations";
import type { AgentList, ModelList, NewSession, SessionRow, SettingsView } from "../../generated/types";

interface Options {
  settings: SettingsView;
  models: ModelList;
  agents: AgentList;
}

const EMPTY = {
  task: "",
  workspace: "",
  model: "",
  base_url: "",
  agent: "",
  confirmation: "",
  iterations: "",
  cost: "",
  allow_net: "",
};
type Form = typeof EMPTY;

/** Starts a session; the folders of the `known` sessions are suggested. */
export function NewSessionDialog({ known, onClose }: { known: SessionRow[]; onClose: () => void }) {
  const folders = [...new Set(known.map((row) => row.workspace))].filter((path) => path.startsWith("/"));
  const [form, setForm] = useState<Form>({ ...EMPTY, workspace: folders[0] ?? "" });
  const { value: options, problem: loadProblem } = useLoaded(async () => {
    const [settings, models, agents] = await Promise.all([api.settings(), api.models(), api.agents()]);
    return { settings, models, agents };
  }, []);
  const { busy, problem, run } = useAsync();
  const field = (name: keyof Form) => ({
    name,
    value: form[name],
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  });
  const create = () => run(async () => go(sessionPath((await api.create(requestOf(form))).id)));
  return (
    <Dialog title="New session" onClose={onClose} onSubmit={create}>
      <Field label="Task">
        <textarea
          {...field("task")}
          autoFocus
          required
          rows={5}
          placeholder="The task, in your words"
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }}
        />
      </Field>
      <Field label="Folder" hint="An absolute path on the server's machine. The agent works on a copy of it.">
        <input {...field("workspace")} required list="folders" placeholder="/home/you/project" spellCheck={false} />
      </Field>
      <datalist id="folders">
        {folders.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
      <ModelField field={field} options={options} />
      <details>
        <summary>More options</summary>
        <div className="stack">
          <MoreFields field={field} options={options} />
        </div>
      </details>
      <Problem text={problem || loadProblem} />
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={busy}>
          Start
        </Button>
      </footer>
    </Dialog>
  );
}

type FieldOf = (name: keyof Form) => {
  name: string;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
};

function ModelField({ field, options }: { field: FieldOf; options: Options | null }) {
  return (
    <>
      <Field label="Model" hint={options ? `The default is ${options.settings.model}.` : ""}>
        <input {...field("model")} list="models" placeholder={options?.settings.model ?? ""} spellCheck={false} />
      </Field>
      <datalist id="models">
        {options?.models.models.map(({ name, about }) => (
          <option key={name} value={name}>
            {about}
          </option>
        ))}
      </datalist>
    </>
  );
}

function MoreFields({ field, options }: { field: FieldOf; options: Options | null }) {
  return (
    <>
      <Field label="Base URL" hint="The address of an OpenAI-compatible server.">
        <input {...field("base_url")} type="url" placeholder="http://localhost:8000/v1" />
      </Field>
      <Field label="Agent">
        <select {...field("agent")}>
          <option value="">{options?.settings.agent ?? "The default"}</option>
          {options?.agents.agents.map(({ name, about }) => (
            <option key={name} value={name} title={about}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Ask for approval">
        <select {...field("confirmation")}>
          <option value="">The default</option>
          {CONFIRMATIONS.map(([value, about]) => (
            <option key={value} value={value}>
              {about}
            </option>
          ))}
        </select>
      </Field>
      <Field label="Hosts the sandbox may reach" hint="Names, wildcards, or pypi, npm, debian; separated by commas.">
        <input {...field("allow_net")} spellCheck={false} />
      </Field>
      <div className="row">
        <Field label="Limit of steps">
          <input {...field("iterations")} type="number" min={1} />
        </Field>
        <Field label="Limit of cost in USD">
          <input {...field("cost")} type="number" min={0.01} step={0.01} />
        </Field>
      </div>
    </>
  );
}

function requestOf(form: Form): NewSession {
  const { task, workspace, model, base_url, agent, confirmation, iterations, cost, allow_net } = form;
  const limits = { ...(iterations && { iterations: Number(iterations) }), ...(cost && { cost: Number(cost) }) };
  const hosts = allow_net
    .split(",")
    .map((host) => host.trim())
    .filter(Boolean);
  return {
    task,
    workspace: workspace.trim(),
    ...(model && { model: model.trim() }),
    ...(base_url && { base_url: base_url.trim() }),
    ...(agent && { agent }),
    ...(confirmation && { confirmation: confirmation as Confirmation }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(hosts.length > 0 && { allow_net: hosts }),
  };
}
