import { useEffect, useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { useAsync } from "../components/useAsync";
import type { Confirmation } from "../events";
import { go, sessionPath } from "../router";
import type { AgentList, ModelList, NewSession, SessionRow, SettingsView } from "../../generated/types";

const CONFIRMATIONS: [Confirmation, string][] = [
  ["never", "Nothing: it works in a sandbox, on a copy"],
  ["risky", "What is risky"],
  ["always", "Everything it does"],
];

interface Offered {
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

/** Begin a session; `known` ones say which folders were worked on before. */
export function NewSessionDialog({ known, onClose }: { known: SessionRow[]; onClose: () => void }) {
  const folders = [...new Set(known.map((row) => row.workspace))].filter((path) => path.startsWith("/"));
  const [form, setForm] = useState<Form>({ ...EMPTY, workspace: folders[0] ?? "" });
  const [offered, setOffered] = useState<Offered | null>(null);
  const { busy, problem, run } = useAsync();
  useEffect(() => {
    run(async () => {
      const [settings, models, agents] = await Promise.all([api.settings(), api.models(), api.agents()]);
      setOffered({ settings, models, agents });
    });
  }, []);
  const field = (name: keyof Form) => ({
    name,
    value: form[name],
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  });
  const begin = () =>
    run(async () => {
      const session = await api.create(requestOf(form));
      go(sessionPath(session.id));
    });
  return (
    <Dialog title="New session" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          begin();
        }}
      >
        <Field label="Task">
          <textarea
            {...field("task")}
            autoFocus
            required
            rows={5}
            placeholder="What is to be done, in your words"
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
        <Model field={field} offered={offered} />
        <details>
          <summary>More choices</summary>
          <div className="stack">
            <More field={field} offered={offered} />
          </div>
        </details>
        <p role="alert" className="error-text">
          {problem}
        </p>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" disabled={busy}>
            Begin
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

type FieldOf = (name: keyof Form) => {
  name: string;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
};

function Model({ field, offered }: { field: FieldOf; offered: Offered | null }) {
  return (
    <>
      <Field label="Model" hint={offered ? `Left empty it is ${offered.settings.model}.` : ""}>
        <input {...field("model")} list="models" placeholder={offered?.settings.model ?? ""} spellCheck={false} />
      </Field>
      <datalist id="models">
        {offered?.models.models.map(({ name, about }) => (
          <option key={name} value={name}>
            {about}
          </option>
        ))}
      </datalist>
    </>
  );
}

function More({ field, offered }: { field: FieldOf; offered: Offered | null }) {
  return (
    <>
      <Field label="Base URL" hint="Of an OpenAI-compatible server that has the model.">
        <input {...field("base_url")} type="url" placeholder="http://localhost:8000/v1" />
      </Field>
      <Field label="Agent">
        <select {...field("agent")}>
          <option value="">{offered?.settings.agent ?? "as the settings say"}</option>
          {offered?.agents.agents.map(({ name, about }) => (
            <option key={name} value={name} title={about}>
              {name}
            </option>
          ))}
        </select>
      </Field>
      <Field label="What you are asked before it is done">
        <select {...field("confirmation")}>
          <option value="">As the settings say</option>
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
        <Field label="Steps at most">
          <input {...field("iterations")} type="number" min={1} />
        </Field>
        <Field label="US dollars at most">
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
