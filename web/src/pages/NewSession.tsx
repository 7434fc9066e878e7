import { useEffect, useState } from "react";
import { api } from "../api";
import { draftOf, saveDraft } from "../chat/drafts";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import { ModelField } from "../models/ModelField";
import { go, sessionPath } from "../router";
import { FolderField } from "../starting/FolderField";
import { EMPTY, type Form, lastForm, optionCount, rememberForm, requestOf, templates } from "../starting/form";
import { OptionFields } from "../starting/OptionFields";
import { TemplateField } from "../starting/TemplateField";
import "../styles/starting.css";
import type { SessionRow } from "../../generated/types";

/** The name of the task's draft: no session has this id. */
const NEW = "";

/** Starts a session; the folders of the `known` sessions are suggested. */
export function NewSessionDialog({ known, onClose }: { known: SessionRow[]; onClose: () => void }) {
  const folders = [...new Set(known.map((row) => row.workspace))].filter((path) => path.startsWith("/"));
  const [form, setForm] = useState<Form>(() => {
    return { ...EMPTY, workspace: folders[0] ?? "", ...lastForm(), task: draftOf(NEW).text };
  });
  useEffect(() => {
    const saved = templates().some((template) => template.form.task === form.task);
    saveDraft(NEW, { text: saved ? "" : form.task, images: [] });
  }, [form.task]);
  const { value: options, problem: loadProblem } = useLoaded(async () => {
    const [settings, agents] = await Promise.all([api.settings(), api.agents()]);
    return { settings, agents };
  }, []);
  const { busy, problem, run } = useAsync();
  const field = (name: keyof Form) => ({
    name,
    value: form[name],
    onChange: (event: { target: { value: string } }) => setForm({ ...form, [name]: event.target.value }),
  });
  const create = () =>
    run(async () => {
      const { id } = await api.create(requestOf(form));
      rememberForm(form);
      saveDraft(NEW, { text: "", images: [] });
      go(sessionPath(id));
    });
  const changed = optionCount(form);
  return (
    <Dialog title="New session" onClose={onClose} onSubmit={create} wide>
      <TemplateField form={form} onChoose={(chosen) => setForm({ ...EMPTY, ...chosen })} />
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
      <FolderField
        value={form.workspace}
        known={folders}
        onChange={(workspace) => setForm((before) => ({ ...before, workspace }))}
      />
      <ModelField
        value={form.model}
        baseUrl={form.base_url || (options?.settings.base_url ?? "")}
        placeholder={options?.settings.model}
        hint={options ? `As the settings say: ${options.settings.model}.` : ""}
        onChange={(model) => setForm((before) => ({ ...before, model }))}
      />
      <details>
        <summary>More options{changed > 0 && `, ${changed} as last time or in the template`}</summary>
        <div className="stack">
          <OptionFields field={field} settings={options?.settings ?? null} agents={options?.agents ?? null} />
          {changed > 0 && (
            <div>
              <Button
                onClick={() => setForm({ ...EMPTY, task: form.task, workspace: form.workspace, model: form.model })}
              >
                All as the settings say
              </Button>
            </div>
          )}
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
