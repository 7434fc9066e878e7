import type { PaneInfo } from "../panes";
import type { PaneComponent } from "../panes";

const found = import.meta.glob<{ default: PaneComponent }>("./Chat.tsx");

export const CHAT: PaneInfo = {
  name: "chat",
  title: "Chat",
  load: found["./Chat.tsx"] ?? (() => Promise.resolve({ default: () => null })),
};
