import { useEffect, useState, type CSSProperties } from "react";
import { said } from "../api";
import { CHAT } from "../chat";
import { Button } from "../components/Button";
import { Divider } from "../components/Divider";
import { LazyPane } from "../components/LazyPane";
import { Link } from "../components/Link";
import { StateBadge } from "../components/StateBadge";
import { Tabs } from "../components/Tabs";
import { ThemeSwitch } from "../components/ThemeSwitch";
import { useShortcuts } from "../keyboard";
import { usePhone } from "../media";
import { PANES } from "../panes";
import { go, sessionPath } from "../router";
import { SessionStore, useSession } from "../store";

/** One session: it is fetched, followed while it is shown, and left when it is not. */
export function SessionPage({ id, pane }: { id: string; pane: string }) {
  const [store, setStore] = useState<SessionStore | null>(null);
  const [problem, setProblem] = useState("");
  const [attempt, setAttempt] = useState(0);
  useEffect(() => {
    let left = false;
    let opened: SessionStore | null = null;
    setProblem("");
    SessionStore.open(id).then(
      (made) => {
        opened = made;
        if (left) made.close();
        else setStore(made);
      },
      (error: unknown) => {
        if (!left) setProblem(said(error));
      },
    );
    return () => {
      left = true;
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
  const parts = phone ? [CHAT, ...PANES] : PANES;
  const shown = parts.find((part) => part.name === pane) ?? parts[0];
  const show = (name: string) => go(sessionPath(store.id, name), true);
  useLayoutShortcuts(store, show);
  const tabs = shown && (
    <Tabs parts={parts} shown={shown.name} onShow={show}>
      <LazyPane part={shown} session={store} />
    </Tabs>
  );
  return (
    <div className="session">
      <Bar store={store} />
      <main className="split" style={{ "--chat-width": `${width}%` } as CSSProperties}>
        {!phone && (
          <>
            <section className="session-chat" aria-label="Chat">
              <LazyPane part={CHAT} session={store} />
            </section>
            <Divider width={width} onMove={setWidth} />
          </>
        )}
        <section className="session-panes" aria-label="Panes">
          {tabs}
        </section>
      </main>
    </div>
  );
}

function Bar({ store }: { store: SessionStore }) {
  const { info, state, connected, problem } = useSession(store);
  useEffect(() => {
    document.title = `${info.title} · Handiwork`;
    return () => {
      document.title = "Handiwork";
    };
  }, [info.title]);
  return (
    <>
      <header className="bar">
        <Link className="button quiet" to="/" aria-label="All sessions">
          ← <span className="wide-only">Sessions</span>
        </Link>
        <h1 className="cut grow" title={info.title}>
          {info.title}
        </h1>
        <span className="faint cut wide-only" title={info.model}>
          {info.model}
        </span>
        <StateBadge state={state} />
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
    // The moment it takes to connect is nothing to tell.
    const timer = connected ? undefined : setTimeout(() => setLate(true), 1500);
    return () => clearTimeout(timer);
  }, [connected]);
  const text = problem || (late ? "Not connected: trying again. What is shown may be old." : "");
  return (
    <div role="status" className={text ? "notice" : undefined}>
      {text}
    </div>
  );
}

function useLayoutShortcuts(store: SessionStore, show: (pane: string) => void): void {
  const interrupt = () => {
    if (store.snapshot().state === "running") store.api.interrupt().catch((error: unknown) => alert(said(error)));
  };
  useShortcuts([
    { keys: "escape", does: "Interrupt: stop what runs, and pause", run: interrupt, always: true },
    { keys: "ctrl+.", does: "Interrupt, also where Escape means something else", run: interrupt, always: true },
    { keys: "g", does: "All sessions", run: () => go("/") },
    ...PANES.map(({ name, title }, place) => ({
      keys: `alt+${place + 1}`,
      does: `Show ${title}`,
      run: () => show(name),
      always: true,
    })),
  ]);
}
