/** The state of the session, and the commands that help in it. */

import { useEffect, useRef, useState } from "react";
import { ApplyDialog } from "../apply/ApplyDialog";
import { PullRequestDialog } from "../apply/PullRequestDialog";
import { useApplyPreview } from "../apply/useApplyPreview";
import { useBranch } from "../apply/useBranch";
import { useUndo } from "../apply/useUndo";
import { canApply, changedCount, whereText } from "../apply/wording";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { type SessionStore, useSession, useSessionPart } from "../store";
import { exact } from "../wording/text";
import { PermissionsDialog } from "../steering/PermissionsDialog";
import { LimitsDialog } from "./LimitsDialog";
import { ModelDialog } from "./ModelDialog";
import { type Command, progressText, statusOf } from "./banner";

const LABELS: Record<Command, string> = {
  interrupt: "Interrupt",
  resume: "Resume",
  rewind: "Rewind the agent",
  limits: "Change the limits",
  model: "Change the model",
};

export function Banner({ store }: { store: SessionStore }) {
  const { info } = useSession(store);
  const [dialog, setDialog] = useState<"model" | "limits" | "permissions" | "apply" | "request" | null>(null);
  const { busy, problem, run } = useAsync();
  const { value: preview, problem: unknown } = useApplyPreview(store, info.state === "finished");
  const undoing = useUndo(store);
  const making = useBranch(store);
  const finished = info.state === "finished" && preview !== null;
  const { tone, title, detail, commands } = statusOf(info);
  const execute = (command: Command) => {
    if (command === "model" || command === "limits") setDialog(command);
    else run(() => store.api[command]());
  };
  const ended = ["finished", "rejected", "stopped"].includes(info.state);
  const process = info.run_by;
  const close = () => setDialog(null);

  return (
    <section className={`chat-banner ${tone}`} aria-label="State of the session">
      <span className="chat-state">
        {tone === "busy" && <span className="chat-pulse" aria-hidden="true" />}
        {title}
      </span>
      <span className="chat-detail">
        {tone === "busy" ? <Progress store={store} /> : exact((finished && whereText(preview)) || detail)}
        {process && !process.here && ` Run by process ${process.pid} on ${exact(process.host)}.`}
      </span>
      <Problem text={problem || undoing.problem || making.problem || (info.state === "finished" ? unknown : "")} />
      <span className="chat-commands">
        {finished && canApply(preview) && (
          <Button kind="primary" onClick={() => setDialog("apply")}>
            Apply to the folder
          </Button>
        )}
        {finished && preview.request !== null && changedCount(preview) > 0 && (
          <Button onClick={() => setDialog("request")}>Open a {preview.request}</Button>
        )}
        {finished && changedCount(preview) > 0 && (
          <>
            <Button disabled={making.busy} onClick={making.make}>
              Make a branch
            </Button>
            <a className="button" href={store.api.patchUrl} download>
              Download a patch
            </a>
          </>
        )}
        {finished && preview.undoable.length > 0 && (
          <Button disabled={undoing.busy} onClick={undoing.undo}>
            Undo the apply
          </Button>
        )}
        <span className="chat-commands">
          {commands.map((command, index) => (
            <Button
              key={command}
              kind={index === 0 ? "primary" : "plain"}
              disabled={busy}
              onClick={() => execute(command)}
            >
              {LABELS[command]}
            </Button>
          ))}
          {!commands.includes("model") && <Button onClick={() => setDialog("model")}>Model</Button>}
          {!commands.includes("limits") && <Button onClick={() => setDialog("limits")}>Limits</Button>}
          <Button onClick={() => setDialog("permissions")}>Permissions</Button>
          {!ended && (
            <Button disabled={busy} onClick={() => run(() => store.api.stop())}>
              Stop
            </Button>
          )}
        </span>
      </span>
      <p role="status" className={making.said ? "chat-said" : "hidden"}>
        {making.said}
      </p>
      {dialog === "model" && <ModelDialog store={store} onClose={close} />}
      {dialog === "apply" && <ApplyDialog store={store} onClose={close} />}
      {dialog === "request" && (
        <PullRequestDialog store={store} noun={preview?.request ?? "pull request"} onClose={close} />
      )}
      {dialog === "limits" && <LimitsDialog store={store} onClose={close} />}
      {dialog === "permissions" && <PermissionsDialog store={store} onClose={close} />}
    </section>
  );
}

/** The operation in progress and its duration. */
function Progress({ store }: { store: SessionStore }) {
  const head = useSessionPart(store, (now) => now.head);
  const live = useSessionPart(store, (now) => now.live);
  const info = useSessionPart(store, (now) => now.info);
  const [seconds, setSeconds] = useState(0);
  const shown = useRef(false);
  useEffect(() => {
    const now = store.snapshot();
    // The operation may be older than the page; those after it begin while the page is open.
    const newest = shown.current || now.last < now.head ? undefined : now.events.at(-1);
    shown.current = true;
    const start = Math.min(Date.now(), newest ? Date.parse(newest.timestamp) : Infinity);
    const count = () => setSeconds(Math.round((Date.now() - start) / 1000));
    count();
    const timer = setInterval(count, 1000);
    return () => clearInterval(timer);
  }, [store, head]);
  return <>{exact(progressText(live, info, seconds))}</>;
}
