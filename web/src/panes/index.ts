// The panes; each is loaded when it is first shown.

import type { ComponentType } from "react";
import type { SessionStore } from "../store";

export type PaneComponent = ComponentType<{ session: SessionStore }>;

export interface PaneInfo {
  name: string;
  title: string;
  load: () => Promise<{ default: PaneComponent }>;
}

const modules = import.meta.glob<{ default: PaneComponent }>("./*.tsx");

/** In the order of their tabs; alt+1 is the first. */
export const PANES: PaneInfo[] = [
  "Terminal",
  "Files",
  "Changes",
  "Notebook",
  "Browser",
  "Plan",
  "Timeline",
  "Cost",
  "Compare",
].flatMap((title) => {
  const load = modules[`./${title}.tsx`];
  return load === undefined ? [] : [{ name: title.toLowerCase(), title, load }];
});
