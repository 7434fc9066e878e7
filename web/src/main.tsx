import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./App";
import { begin } from "./theme";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/components.css";
import "./styles/session.css";
import "./styles/pages.css";
import "./styles/panes.css";

import.meta.glob("./styles/*.css", { eager: true });

begin();
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
