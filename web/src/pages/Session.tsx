import { useEffect, useState, type CSSProperties } from "react";
import { errorMessage } from "../api";
import { CHAT } from "../chat";
import { Button } from "../components/Button";
import { Divider } from "../components/Divider";
import { LazyPane, preload } from "../components/LazyPane";
import { Link } from "../components/Link";
import { StateBadge } from "../components/StateBadge";
import { Tabs } from "../components/Tabs";
import { ThemeSwitch } from "../components/ThemeSwitch";
import { useShortcuts } from "../keyboard";
import { usePhone } from "../media";
import { type PaneInfo, PANES, READ_ONLY_PANES } from "../panes";
import { evaluationPath, go, sessionPath } from "../router";
import { useAttention } from "../steering/attention";
import { NotificationSwitch } from "../steering/notifications";
import { SessionStore, useSession, useSessionPart } from "../store";

/** A session, followed while its page is open. */
export function SessionPage({ id, pane }: { id: string; pane: string }) {
  const [store, setStore] = useState<SessionStore | null>(null);
  const [problem, setProblem] = useState("");
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let closed = false;
    let opened: SessionStore | null = null;
    setProblem("");
    Promise.all([SessionStore.open(id), preload(CHAT)]).then(
      ([store]) => {
        opened = store;
        if (closed) store.close();
        else setStore(store);
      },
      (error: unknown) => {
        if (!closed) setProblem(errorMessage(error));
      },
    );
    return () => {
      closed = true;
      opened?.close();
    };
  }, [id, attempt]);
  if (problem) {
    return (
      <main className="middle" role="alert">
        <p className="error-text">{problem}</p>
        <div className="row" style={{ justifyContent: "center" }}>
          <Button onClick={() => setAttempt(attempt + 1)}>Try again</Button>
          <Button onClick={() => go("/")}>All sessions</Button>
        </div>
      </main>
    );
  }
  if (store === null) return <main className="middle faint">Loading …</main>;
  return <Layout store={store} pane={pane} />;
}

function Layout({ store, pane }: { store: SessionStore; pane: string }) {
  const phone = usePhone();
  const [width, setWidth] = useState(46);
  const readOnly = useSessionPart(store, (now) => now.info.read_only);
  const panes = readOnly ? READ_ONLY_PANES : PANES;
  const tabs = phone ? [CHAT, ...panes] : panes;
  const first = readOnly && !phone ? tabs.find((tab) => tab.name === "timeline") : tabs[0];
  const shown = tabs.find((tab) => tab.name === pane) ?? first;
  const show = (name: string) => go(sessionPath(store.id, name), true);
  useLayoutShortcuts(store, panes, show);
  return (
    <div className="session">
      <TitleBar store={store} />
      <main className="split" style={{ "--chat-width": `${width}%` } as CSSProperties}>
        {!phone && (
          <>
            <section className="session-chat" aria-label="Chat">
              <LazyPane pane={CHAT} session={store} />
            </section>
            <Divider width={width} onMove={setWidth} />
          </>
        )}
        <section className="session-panes" aria-label="Panes">
          {shown && (
            <Tabs tabs={tabs} shown={shown.name} onShow={show}>
              <LazyPane pane={shown} session={store} />
            </Tabs>
          )}
        </section>
      </main>
    </div>
  );
}

function TitleBar({ store }: { store: SessionStore }) {
  const { info, connected, problem } = useSession(store);
  useAttention(info);
  return (
    <>
      <header className="bar">
        {info.read_only ? (
          <Link className="button quiet" to={evaluationPath()} aria-label="All rollouts">
            ← <span className="wide-only">Rollouts</span>
          </Link>
        ) : (
          <Link className="button quiet" to="/" aria-label="All sessions">
            ← <span className="wide-only">Sessions</span>
          </Link>
        )}
        <h1 className="cut grow" title={info.title}>
          {info.title}
        </h1>
        <span className="faint cut wide-only" title={info.model}>
          {info.model}
        </span>
        {!info.read_only && (
          <>
            <StateBadge session={info} />
            <NotificationSwitch when="the session needs me or is done" />
          </>
        )}
        <span className="wide-only">
          <ThemeSwitch />
        </span>
      </header>
      <Connection connected={connected} problem={problem} />
    </>
  );
}

function Connection({ connected, problem }: { connected: boolean; problem: string }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    setLate(false);
    // Short interruptions are not worth a message.
    const timer = connected ? undefined : setTimeout(() => setLate(true), 1500);
    return () => clearTimeout(timer);
  }, [connected]);
  const text = problem || (late ? "Not connected, retrying. The page may be out of date." : "");
  return (
    <div role="status" className={text ? "notice" : undefined}>
      {text}
    </div>
  );
}

function useLayoutShortcuts(store: SessionStore, panes: PaneInfo[], show: (pane: string) => void): void {
  const interrupt = () => {
    const { state, read_only } = store.snapshot().info;
    if (state === "running" && !read_only) store.api.interrupt().catch((error: unknown) => alert(errorMessage(error)));
  };
  useShortcuts([
    { keys: "escape", label: "Interrupt: stop the running action, and pause", run: interrupt, always: true },
    { keys: "ctrl+.", label: "Interrupt, even if Escape closes something", run: interrupt, always: true },
    { keys: "g", label: "All sessions", run: () => go("/") },
    ...panes.slice(0, 9).map(({ name, title }, index) => ({
      keys: `alt+${index + 1}`,
      label: `Show ${title}`,
      run: () => show(name),
      always: true,
    })),
  ]);
}
