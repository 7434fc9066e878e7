/** Shows the pull request that the session's changes make, lets the user edit it, and opens it. */

import { useState } from "react";
import type { OpenPullRequest, PullRequestProposal } from "../../generated/types";
import { Button } from "../components/Button";
import { Dialog } from "../components/Dialog";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { useLoaded } from "../components/useLoaded";
import { KeyForm } from "../models/KeyForm";
import type { SessionStore } from "../store";
import "../styles/models.css";
import { plural } from "../wording/format";
import { capital, exact } from "../wording/text";
import { tokenAbout } from "./wording";

interface Props {
  store: SessionStore;
  /** The forge's word for a pull request. */
  noun: string;
  onClose: () => void;
}

export function PullRequestDialog({ store, noun, onClose }: Props) {
  const [tokens, setTokens] = useState(0);
  const [opened, setOpened] = useState<OpenPullRequest | null>(null);
  const { value: proposal, problem, loading } = useLoaded(() => store.api.pullRequest.propose(), [store, tokens]);
  if (opened !== null) return <Outcome opened={opened} onClose={onClose} />;
  if (proposal?.account != null) return <Form {...{ store, proposal, onClose }} onOpened={setOpened} />;
  const take = async (token: string, keep: boolean) => {
    await store.api.pullRequest.setToken(token, keep);
    setTokens(tokens + 1);
  };
  return (
    <Dialog title={`Open a ${noun}`} onClose={onClose} wide>
      <div className="stack">
        {loading && !proposal && <p>Looking at the repository …</p>}
        {proposal && (
          <>
            <p>
              A {proposal.noun} in <strong className="apply-path">{exact(proposal.repository)}</strong> needs a token of
              yours for {exact(proposal.host)}.
            </p>
            <Problem text={proposal.problem} />
            <KeyForm label={`Token for ${proposal.host}`} about={tokenAbout(proposal)} take={take} />
          </>
        )}
        <Problem text={problem} />
        <footer>
          <Button onClick={onClose}>Cancel</Button>
        </footer>
      </div>
    </Dialog>
  );
}

interface FormProps {
  store: SessionStore;
  proposal: PullRequestProposal;
  onClose: () => void;
  onOpened: (opened: OpenPullRequest) => void;
}

function Form({ store, proposal, onClose, onOpened }: FormProps) {
  const { noun, host, repository, account, bases, files, warnings } = proposal;
  const [title, setTitle] = useState(proposal.title);
  const [body, setBody] = useState(proposal.body);
  const [base, setBase] = useState(proposal.base);
  const [draft, setDraft] = useState(false);
  const { busy, problem, run } = useAsync();
  const open = () =>
    run(async () =>
      onOpened(await store.api.pullRequest.open({ title: title.trim(), body, base: base.trim(), draft })),
    );
  return (
    <Dialog title={`Open a ${noun}`} onClose={onClose} onSubmit={open} wide>
      <p>
        In <strong className="apply-path">{exact(repository)}</strong> on {exact(host)}, as {exact(account ?? "")}.
        Nothing is sent yet.
      </p>
      <Field label="Title">
        <input value={title} required maxLength={255} onChange={(event) => setTitle(event.target.value)} />
      </Field>
      <Field label="Text" hint="Markdown, as the forge shows it.">
        <textarea rows={8} value={body} maxLength={65000} onChange={(event) => setBody(event.target.value)} />
      </Field>
      <Field label="Merge into">
        <input
          value={base}
          required
          maxLength={255}
          list="request-bases"
          spellCheck={false}
          onChange={(event) => setBase(event.target.value)}
        />
      </Field>
      <datalist id="request-bases">
        {bases.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <label className="model-keep">
        <input type="checkbox" checked={draft} onChange={(event) => setDraft(event.target.checked)} />
        <span>As a draft, which nobody can merge yet</span>
      </label>
      <details>
        <summary>{plural(files.length, "changed file")}</summary>
        <ul className="list apply-files" aria-label="Changed files" tabIndex={0}>
          {files.map((path) => (
            <li key={path} className="mono">
              {path}
            </li>
          ))}
        </ul>
      </details>
      {warnings.map((warning) => (
        <p key={warning}>{exact(warning)}</p>
      ))}
      <Problem text={problem} />
      <footer>
        <Button onClick={onClose}>Cancel</Button>
        <Button type="submit" kind="primary" disabled={busy || !title.trim() || !base.trim()}>
          {busy ? "Pushing …" : `Open the ${noun}`}
        </Button>
      </footer>
    </Dialog>
  );
}

function Outcome({ opened, onClose }: { opened: OpenPullRequest; onClose: () => void }) {
  const { noun, number, url, branch, created, warnings } = opened;
  return (
    <Dialog title={`${capital(noun)} ${number}`} onClose={onClose} onSubmit={onClose} wide>
      <p role="status">
        {created
          ? `The ${noun} is open.`
          : `This ${noun} was open already. It keeps its title and text, and its branch has the changes.`}
      </p>
      <p>
        <a className="apply-path" href={url} target="_blank" rel="noopener noreferrer">
          {exact(url)}
        </a>
      </p>
      <p>
        Its branch is <code>{branch}</code>, which your repository has too. Your files and your current branch stay as
        they are.
      </p>
      {warnings.map((warning) => (
        <p key={warning}>{exact(warning)}</p>
      ))}
      <footer>
        <Button type="submit" kind="primary">
          Close
        </Button>
      </footer>
    </Dialog>
  );
}
