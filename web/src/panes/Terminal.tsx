import { useRef, useSyncExternalStore } from "react";

import { Button } from "../components/Button";
import { RadioGroup } from "../components/RadioGroup";
import { useShortcuts } from "../keyboard";
import type { SessionStore } from "../store";
import { AgentScreen } from "./terminal/AgentScreen";
import { LEAVE, shellsOf } from "./terminal/shells";
import { ShellScreen } from "./terminal/ShellScreen";

const AGENT = "agent";

/** The agent's commands, and terminals of the user's own in the session's sandbox. */
export default function TerminalPane({ session }: { session: SessionStore }) {
  const own = shellsOf(session);
  const { shells, chosen } = useSyncExternalStore(own.subscribe, own.snapshot);
  const bar = useRef<HTMLDivElement>(null);
  useShortcuts([
    {
      keys: LEAVE,
      label: "Leave your terminal: move the focus to the bar above it",
      run: () => bar.current?.querySelector<HTMLElement>(":checked")?.focus(),
      always: true,
    },
  ]);
  const names = Object.fromEntries(shells.map((shell) => [`shell-${shell.number}`, `Terminal ${shell.number}`]));
  const value = chosen ? `shell-${chosen.number}` : AGENT;
  return (
    <div className="pane-column">
      <div className="pane-bar" ref={bar}>
        {shells.length > 0 && (
          <RadioGroup
            label="Terminals"
            options={{ [AGENT]: "Agent", ...names }}
            value={value}
            onChange={(name) => own.choose(shells.find((shell) => `shell-${shell.number}` === name) ?? null)}
          />
        )}
        <Button onClick={() => own.add()}>New terminal</Button>
        {chosen && (
          <>
            <Button label={`Close Terminal ${chosen.number}`} onClick={() => own.close(chosen)}>
              Close
            </Button>
            <span className="faint wide-only">
              <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>↑</kbd> leaves the terminal
            </span>
          </>
        )}
      </div>
      {chosen ? <ShellScreen key={chosen.number} shell={chosen} /> : <AgentScreen session={session} />}
    </div>
  );
}
