import { useEffect, useState } from "react";
import { Shortcuts } from "./components/Shortcuts";
import { press, useShortcuts } from "./keyboard";
import { Evaluation } from "./pages/Evaluation";
import { FirstRun } from "./pages/FirstRun";
import { SessionPage } from "./pages/Session";
import { Sessions } from "./pages/Sessions";
import { usePage } from "./router";

export function App() {
  const page = usePage();
  const [help, setHelp] = useState(false);
  useEffect(() => {
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
  useShortcuts([{ keys: "?", label: "Show the keyboard shortcuts", run: () => setHelp(true) }]);
  return (
    <>
      {page.name === "sessions" && <Sessions q={page.q} state={page.state} archived={page.archived} />}
      {page.name === "first-run" && <FirstRun />}
      {page.name === "evaluation" && <Evaluation q={page.q} status={page.status} />}
      {page.name === "session" && <SessionPage key={page.id} id={page.id} pane={page.pane} />}
      {help && <Shortcuts onClose={() => setHelp(false)} />}
    </>
  );
}
