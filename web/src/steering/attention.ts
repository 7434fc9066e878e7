// Tells a user who looks elsewhere that a session needs them or is done: the tab's title and icon, and notifications.

import { useCallback, useEffect, useRef, useState, useSyncExternalStore } from "react";
import type { SessionRow } from "../../generated/types";
import type { AgentState } from "../events";
import { notify } from "./notifications";

/** handiwork/log/lists/pages.py sorts by the same states. */
const NEEDS_USER: ReadonlySet<AgentState> = new Set([
  "awaiting_user_confirmation",
  "awaiting_user_input",
  "paused",
  "error",
]);
const DONE: ReadonlySet<AgentState> = new Set(["finished", "rejected"]);
const WORDS: Partial<Record<AgentState, string>> = {
  awaiting_user_confirmation: "The agent needs your approval",
  awaiting_user_input: "The agent waits for your answer",
  paused: "The session is paused",
  error: "The session has failed",
  finished: "The agent has finished",
  rejected: "The agent rejected the task",
};
const ICON = "/icon.svg";

/** Whether a session of the list needs the user: it waits for them, or its process ended while it was running. */
export function rowNeedsUser({ state, interrupted }: Pick<SessionRow, "state" | "interrupted">): boolean {
  return NEEDS_USER.has(state) || (interrupted && state === "running");
}

/** Keep the tab's title and icon, and notify the user of changes while the page is not looked at. */
export function useAttention(row: SessionRow): void {
  const { id, title, state } = row;
  const away = useAway();
  const [unseen, setUnseen] = useState(false);
  const needed = rowNeedsUser(row);
  const now = row.interrupted ? "interrupted" : state;
  const before = useRef<string>(now);
  useEffect(() => {
    const changed = before.current !== now;
    before.current = now;
    if (!away || !(needed || DONE.has(state))) setUnseen(false);
    else if (changed) {
      setUnseen(true);
      notify(id, title, WORDS[state] ?? "The session was interrupted");
    }
  }, [away, id, needed, now, state, title]);
  useTab(title, needed || unseen);
}

/** Return a function that takes the rows of sessions, and notifies a user who looks elsewhere if one has changed. */
export function useListAttention(): (row: SessionRow) => void {
  const states = useRef(new Map<string, string>());
  return useCallback((row: SessionRow) => {
    const { id, title, state } = row;
    const now = row.interrupted ? "interrupted" : state;
    const before = states.current.get(id);
    states.current.set(id, now);
    if (before === undefined || before === now || !isAway()) return;
    if (rowNeedsUser(row) || DONE.has(state)) notify(id, title, WORDS[state] ?? "The session was interrupted");
  }, []);
}

/** Set the tab's title, and mark it and the icon if the user is needed. */
export function useTab(title: string, marked: boolean): void {
  useEffect(() => {
    document.title = `${marked ? "● " : ""}${title} · Handiwork`;
    const icon = document.querySelector<HTMLLinkElement>("link[rel=icon]");
    if (icon) icon.href = marked ? MARKED_ICON : ICON;
    return () => {
      document.title = "Handiwork";
      if (icon) icon.href = ICON;
    };
  }, [title, marked]);
}

const MARKED_ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#3355cc"/>' +
    '<circle cx="22" cy="10" r="9" fill="#e5484d" stroke="#fff" stroke-width="2"/></svg>',
)}`;

function useAway(): boolean {
  return useSyncExternalStore(subscribe, isAway);
}

function isAway(): boolean {
  return document.visibilityState === "hidden" || !document.hasFocus();
}

function subscribe(listener: () => void): () => void {
  document.addEventListener("visibilitychange", listener);
  window.addEventListener("focus", listener);
  window.addEventListener("blur", listener);
  return () => {
    document.removeEventListener("visibilitychange", listener);
    window.removeEventListener("focus", listener);
    window.removeEventListener("blur", listener);
  };
}
