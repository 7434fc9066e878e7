import { useEffect, useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { Link } from "../components/Link";
import { useAsync } from "../components/useAsync";
import { go, sessionPath } from "../router";
import type { ModelChoice, ModelList } from "../../generated/types";
import { setWelcomed } from "./welcomed";

type Kind = "local" | "key" | "url";

interface Choice {
  kind: Kind;
  local: string;
  provider: string;
  name: string;
  key: string;
  url: string;
}

/** The first page of a new user: pick a model, try it, let it do a first task. */
export function FirstRun() {
  const [models, setModels] = useState<ModelList | null>(null);
  const [current, setCurrent] = useState("");
  const [chosen, setChosen] = useState<ModelChoice | null>(null);
  const loading = useAsync();
  useEffect(() => {
    setWelcomed();
    loading.run(async () => {
      const [list, settings] = await Promise.all([api.models(), api.settings()]);
      setModels(list);
      setCurrent(settings.model);
    });
  }, []);
  return (
    <main className="page narrow">
      <header>
        <div className="grow">
          <h1>Welcome to Handiwork</h1>
          <p className="faint">
            An agent works on your code: in a sandbox, on a copy of it, with the model you choose.
          </p>
        </div>
        <Link className="button" to="/">
          All sessions
        </Link>
      </header>
      <p role="alert" className="error-text">
        {loading.problem}
      </p>
      {models && <PickModel models={models} current={current} onChosen={setChosen} />}
      <FirstTask chosen={chosen} />
    </main>
  );
}

interface PickProps {
  models: ModelList;
  current: string;
  onChosen: (choice: ModelChoice | null) => void;
}

function PickModel({ models, current, onChosen }: PickProps) {
  const providers = models.models.filter(({ name }) => name.endsWith(":NAME"));
  const locals = models.models.filter(({ name }) => name.startsWith("local:"));
  const [choice, setChoice] = useState<Choice>({
    kind: "local",
    local: locals.find(({ name }) => name === current)?.name ?? locals[0]?.name ?? "",
    provider: providers[0]?.name.split(":")[0] ?? "",
    name: "",
    key: "",
    url: "",
  });
  const [reply, setReply] = useState("");
  const { busy, problem, run } = useAsync();
  const set = (part: Partial<Choice>) => {
    setChoice({ ...choice, ...part });
    setReply("");
    onChosen(null);
  };
  const attempt = () =>
    run(async () => {
      setReply("");
      if (choice.kind !== "local" && choice.key) {
        await api.giveKey(choice.kind === "key" ? choice.provider : null, choice.key);
      }
      const answer = await api.tryModel(modelOf(choice));
      const { model } = await api.chooseModel(modelOf(choice));
      const used = model === modelOf(choice).model ? "New sessions use it." : `But HANDIWORK_MODEL says ${model}.`;
      setReply(`It answered after ${answer.seconds.toFixed(1)} s: “${answer.reply.trim()}” ${used}`);
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
          <legend className="hidden">Where the model is</legend>
          <Radio
            choice={choice}
            kind="local"
            set={set}
            title="On this machine"
            about="No key. Small and slow: to try."
          />
          <Radio
            choice={choice}
            kind="key"
            set={set}
            title="A provider's"
            about="Anthropic, OpenAI, Google and others."
          />
          <Radio
            choice={choice}
            kind="url"
            set={set}
            title="At an address"
            about="vLLM, Ollama, LiteLLM or the like."
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
        {choice.kind === "key" && <Provider choice={choice} set={set} models={models} />}
        {choice.kind === "url" && <Address choice={choice} set={set} />}
        <div className="row">
          <Button type="submit" kind="primary" disabled={busy}>
            {busy ? "Waiting for its answer …" : "Try it and use it"}
          </Button>
          {busy && choice.kind === "local" && <span className="faint">The first time it is fetched, then loaded.</span>}
        </div>
        <p role="status" className={problem ? "error-text" : reply ? "good-text" : "hidden"}>
          {problem || reply}
        </p>
      </form>
    </section>
  );
}

interface RadioProps {
  choice: Choice;
  kind: Kind;
  title: string;
  about: string;
  set: (part: Partial<Choice>) => void;
}

function Radio({ choice, kind, title, about, set }: RadioProps) {
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

interface PartProps {
  choice: Choice;
  set: (part: Partial<Choice>) => void;
}

function Provider({ choice, set, models }: PartProps & { models: ModelList }) {
  const providers = models.models.filter(({ name }) => name.endsWith(":NAME"));
  const one = providers.find(({ name }) => name.startsWith(`${choice.provider}:`));
  return (
    <>
      <Field label="Provider">
        <select value={choice.provider} onChange={(event) => set({ provider: event.target.value })}>
          {providers.map(({ name }) => (
            <option key={name}>{name.split(":")[0]}</option>
          ))}
        </select>
      </Field>
      <Field label="Model" hint="Its name as the provider has it.">
        <input
          required
          spellCheck={false}
          value={choice.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Key
        choice={choice}
        set={set}
        needed={!one?.ready}
        hint={one?.ready ? `There is a ${one.about}. A key given here takes its place.` : (one?.about ?? "")}
      />
    </>
  );
}

function Address({ choice, set }: PartProps) {
  return (
    <>
      <Field label="Base URL">
        <input
          required
          type="url"
          placeholder="http://localhost:8000/v1"
          value={choice.url}
          onChange={(event) => set({ url: event.target.value })}
        />
      </Field>
      <Field label="Model" hint="Its name as the server has it.">
        <input
          required
          spellCheck={false}
          value={choice.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      <Key choice={choice} set={set} needed={false} hint="Where the server wants one." />
    </>
  );
}

function Key({ choice, set, needed, hint }: PartProps & { needed: boolean; hint: string }) {
  const kept = "It is kept until the server ends and not written down: put it in your environment to keep it.";
  return (
    <Field label="Key" hint={`${hint} ${kept}`}>
      <input
        type="password"
        autoComplete="off"
        required={needed}
        value={choice.key}
        onChange={(event) => set({ key: event.target.value })}
      />
    </Field>
  );
}

function modelOf({ kind, local, provider, name, url }: Choice): ModelChoice {
  if (kind === "local") return { model: local, base_url: null };
  if (kind === "key") return { model: `${provider}:${name.trim()}`, base_url: null };
  return { model: name.trim(), base_url: url.trim() };
}

function FirstTask({ chosen }: { chosen: ModelChoice | null }) {
  const { busy, problem, run } = useAsync();
  const begin = () =>
    run(async () => {
      const { workspace, task } = await api.makeDemo();
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
      <p>A small Python project has a bug, and its tests fail. Watch the agent find and repair it.</p>
      <div className="row">
        <Button kind="primary" disabled={chosen === null || busy} onClick={begin}>
          Let it repair the bug
        </Button>
        {chosen === null && <span className="faint">Try a model first.</span>}
      </div>
      <p role="alert" className="error-text">
        {problem}
      </p>
    </section>
  );
}
