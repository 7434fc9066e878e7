// All shortcuts: components register them, and `?` lists them.

import { useEffect, useRef } from "react";

interface Shortcut {
  /** Like "?", "ctrl+.", "alt+1" or "escape"; ctrl is also the Mac's command key. */
  keys: string;
  label: string;
  run: () => void;
  /** Active while the user types, too. */
  always?: boolean;
}

const registered: Shortcut[] = [];

/** Register shortcuts while the component is mounted; of two with the same keys the later one wins. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const current = useRef(shortcuts);
  useEffect(() => {
    current.current = shortcuts;
  });
  const key = JSON.stringify(shortcuts.map(({ keys, label, always }) => ({ keys, label, always })));
  useEffect(() => {
    const mine = (JSON.parse(key) as Shortcut[]).map((shortcut, index) => ({
      ...shortcut,
      run: () => current.current[index]?.run(),
    }));
    registered.push(...mine);
    return () => {
      for (const shortcut of mine) registered.splice(registered.indexOf(shortcut), 1);
    };
  }, [key]);
}

export function allShortcuts(): { keys: string; label: string }[] {
  return registered.map(({ keys, label }) => ({ keys, label }));
}

/** Run the shortcut of a key press; return whether there is one. */
export function press(event: KeyboardEvent): boolean {
  // A key held down, or one that edits a composition, is no new answer to what has appeared meanwhile.
  if (event.repeat || event.isComposing) return false;
  const keys = keysOf(event);
  const typing = event.target instanceof HTMLElement && isTyping(event.target);
  const shortcut = registered.findLast((candidate) => candidate.keys === keys && (candidate.always || !typing));
  if (shortcut === undefined || event.defaultPrevented || document.querySelector("dialog[open]")) return false;
  event.preventDefault();
  shortcut.run();
  return true;
}

export function keysOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): string {
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase();
  const parts = [event.ctrlKey || event.metaKey ? "ctrl" : "", event.altKey ? "alt" : ""];
  if (event.shiftKey && key.length > 1) parts.push("shift");
  return [...parts.filter(Boolean), key].join("+");
}

function isTyping(element: HTMLElement): boolean {
  // What the user has just chosen with the mouse keeps the focus.
  if (element instanceof HTMLInputElement) return !["radio", "checkbox", "range"].includes(element.type);
  return element.isContentEditable || ["TEXTAREA", "SELECT"].includes(element.tagName);
}
