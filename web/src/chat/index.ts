import type { PaneComponent, PaneInfo } from "../panes";

const modules = import.meta.glob<{ default: PaneComponent }>("./Chat.tsx");

export const CHAT: PaneInfo = {
  name: "chat",
  title: "Chat",
  load: modules["./Chat.tsx"] ?? (() => Promise.resolve({ default: () => null })),
};
