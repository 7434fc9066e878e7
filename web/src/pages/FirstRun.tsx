import { useEffect, useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { Link } from "../components/Link";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import { isProvider, prefixOf } from "../models/service";
import { go, sessionPath } from "../router";
import "../styles/models.css";
import { count, duration } from "../wording/format";
import type { ModelChoice, ModelDownload, ModelInfo } from "../../generated/types";
import { AddressFields, ProviderFields } from "./FirstRunFields";
import { type Choice, type Kind, modelOf, takeKey } from "./firstChoice";
import { setWelcomed } from "./welcomed";

/** The first-run page: pick a model, try it, and run a first task. */
export function FirstRun() {
  const [chosen, setChosen] = useState<ModelChoice | null>(null);
  useEffect(setWelcomed, []);
  const { value, problem } = useLoaded(() => Promise.all([api.models(), api.settings()]), []);
  return (
    <main className="page narrow">
      <header>
        <div className="grow">
          <h1>Welcome to Handiwork</h1>
          <p className="faint">Run coding agents on a sandboxed copy of your code, with the model of your choice.</p>
        </div>
        <Link className="button" to="/">
          All sessions
        </Link>
      </header>
      <Problem text={problem} />
      {value && <ModelCard models={value[0].models} current={value[1].model} onChosen={setChosen} />}
      <TaskCard chosen={chosen} />
    </main>
  );
}

interface ModelCardProps {
  models: ModelInfo[];
  current: string;
  onChosen: (choice: ModelChoice | null) => void;
}

function ModelCard({ models, current, onChosen }: ModelCardProps) {
  const providers = models.filter(isProvider);
  const locals = models.filter(({ name }) => name.startsWith("local:"));
  const [choice, setChoice] = useState<Choice>({
    kind: "local",
    local: locals.find(({ name }) => name === current)?.name ?? locals[0]?.name ?? "",
    provider: providers[0] ? prefixOf(providers[0]) : "",
    name: "",
    key: "",
    keep: false,
    url: "",
  });
  const [reply, setReply] = useState("");
  const [download, setDownload] = useState<ModelDownload | null>(null);
  const { busy, problem, run } = useAsync();
  const set = (part: Partial<Choice>) => {
    setChoice({ ...choice, ...part });
    setReply("");
    onChosen(null);
  };
  const attempt = () =>
    run(async () => {
      setReply("");
      await takeKey(choice);
      if (choice.kind === "local") await downloaded(choice.local, setDownload).finally(() => setDownload(null));
      const answer = await api.tryModel(modelOf(choice));
      if (choice.keep) await takeKey(choice, true);
      const { model } = await api.chooseModel(modelOf(choice));
      const effect =
        model === modelOf(choice).model ? "New sessions use this model." : `But HANDIWORK_MODEL sets ${model}.`;
      setReply(`The model answered after ${duration(answer.seconds)}: “${answer.reply.trim()}” ${effect}`);
      onChosen(modelOf(choice));
    });
  return (
    <section className="card" aria-labelledby="pick">
      <h2 id="pick">1. Pick a model</h2>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          attempt();
        }}
      >
        <fieldset className="kinds">
          <legend className="hidden">Location of the model</legend>
          <KindOption choice={choice} kind="local" set={set} title="On this machine" about="No key. Small and slow." />
          <KindOption
            choice={choice}
            kind="key"
            set={set}
            title="At a provider"
            about="Anthropic, OpenAI, Google and others."
          />
          <KindOption
            choice={choice}
            kind="url"
            set={set}
            title="At an address"
            about="vLLM, Ollama, LiteLLM and others."
          />
        </fieldset>
        {choice.kind === "local" && (
          <Field label="Model" hint={locals.find(({ name }) => name === choice.local)?.about ?? ""}>
            <select value={choice.local} onChange={(event) => set({ local: event.target.value })}>
              {locals.map(({ name }) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </Field>
        )}
        {choice.kind === "key" && <ProviderFields choice={choice} set={set} models={models} />}
        {choice.kind === "url" && <AddressFields choice={choice} set={set} />}
        <div className="row">
          <Button type="submit" kind="primary" disabled={busy}>
            {download ? "Downloading the model …" : busy ? "Waiting for the answer …" : "Try it and use it"}
          </Button>
        </div>
        {download && (
          <div className="row">
            <progress className="grow" aria-label="Download" value={download.fetched} max={download.size} />
            <span className="faint">{`${megabytes(download.fetched)} of ${megabytes(download.size)} MB`}</span>
          </div>
        )}
        <p role="status" className={problem ? "error-text" : reply ? "good-text" : "hidden"}>
          {problem || reply}
        </p>
      </form>
    </section>
  );
}

const megabytes = (bytes: number) => count(bytes / 1e6);

/** Wait until a local model is downloaded; `onState` gets the state of the download while it goes on. */
async function downloaded(model: string, onState: (state: ModelDownload) => void) {
  for (;;) {
    const state = await api.fetchModel(model);
    if (state.done) return;
    onState(state);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

interface KindProps {
  choice: Choice;
  kind: Kind;
  title: string;
  about: string;
  set: (part: Partial<Choice>) => void;
}

function KindOption({ choice, kind, title, about, set }: KindProps) {
  return (
    <label className={choice.kind === kind ? "kind chosen" : "kind"}>
      <input type="radio" name="kind" checked={choice.kind === kind} onChange={() => set({ kind })} />
      <span>
        <b>{title}</b>
        <br />
        <small>{about}</small>
      </span>
    </label>
  );
}

function TaskCard({ chosen }: { chosen: ModelChoice | null }) {
  const { busy, problem, run } = useAsync();
  const start = () =>
    run(async () => {
      const { workspace, task } = await api.createDemo();
      const { model, base_url } = chosen ?? { model: "", base_url: null };
      const session = await api.create({
        task,
        workspace,
        title: "A first task",
        model,
        ...(base_url && { base_url }),
      });
      go(sessionPath(session.id));
    });
  return (
    <section className="card" aria-labelledby="first">
      <h2 id="first">2. A first task</h2>
      <p>A small Python project has a bug, and its tests fail. Watch the agent repair it.</p>
      <div className="row">
        <Button kind="primary" disabled={chosen === null || busy} onClick={start}>
          Repair the bug
        </Button>
        {chosen === null && <span className="faint">Try a model first.</span>}
      </div>
      <Problem text={problem} />
    </section>
  );
}
