// The panes: one module each in this folder, which the page fetches when the user first opens the pane.

import type { ComponentType } from "react";
import type { SessionStore } from "../store";

export type PaneComponent = ComponentType<{ session: SessionStore }>;

export interface PaneInfo {
  name: string;
  title: string;
  load: () => Promise<{ default: PaneComponent }>;
}

const MODULES = import.meta.glob<{ default: PaneComponent }>("./*.tsx");

/** The first tabs, in order; a module that is not named here follows them. */
const ORDER = ["Terminal", "Files", "Changes", "Notebook", "Browser", "Plan", "Timeline", "Cost", "Compare", "Preview"];

/** In the order of their tabs; alt+1 is the first, and the tenth has no such key. */
export const PANES: PaneInfo[] = Object.entries(MODULES)
  .map(([file, load]) => ({ title: file.slice("./".length, -".tsx".length), load }))
  .map(({ title, load }) => ({ name: title.toLowerCase(), title, load }))
  .sort((one, other) => position(one.title) - position(other.title));

/** The panes that need nothing but the events: those of a session that can only be read. */
export const READ_ONLY_PANES = PANES.filter(({ name }) =>
  ["notebook", "browser", "plan", "timeline", "cost"].includes(name),
);

function position(title: string): number {
  const index = ORDER.indexOf(title);
  return index < 0 ? ORDER.length : index;
}
