// Every shortcut there is: who offers one registers it, and `?` shows them.

import { useEffect, useRef } from "react";

export interface Shortcut {
  /** Like "?", "ctrl+.", "alt+1" or "escape"; ctrl is also the Mac's command key. */
  keys: string;
  does: string;
  run: () => void;
  /** Also while something is being written. */
  always?: boolean;
}

const offered: Shortcut[] = [];

/** Offer shortcuts while the component is there; of two with the same keys the later one counts. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const current = useRef(shortcuts);
  useEffect(() => {
    current.current = shortcuts;
  });
  const known = JSON.stringify(shortcuts.map(({ keys, does, always }) => ({ keys, does, always })));
  useEffect(() => {
    const mine = (JSON.parse(known) as Shortcut[]).map((shortcut, place) => ({
      ...shortcut,
      run: () => current.current[place]?.run(),
    }));
    offered.push(...mine);
    return () => {
      for (const shortcut of mine) offered.splice(offered.indexOf(shortcut), 1);
    };
  }, [known]);
}

export function allShortcuts(): { keys: string; does: string }[] {
  return offered.map(({ keys, does }) => ({ keys, does }));
}

/** Run what a key press means; tell whether it means something. */
export function press(event: KeyboardEvent): boolean {
  const keys = keysOf(event);
  const writing = event.target instanceof HTMLElement && isWriting(event.target);
  const shortcut = offered.findLast((one) => one.keys === keys && (one.always || !writing));
  if (shortcut === undefined || event.defaultPrevented || document.querySelector("dialog[open]")) return false;
  event.preventDefault();
  shortcut.run();
  return true;
}

export function keysOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">): string {
  const key = event.key.length === 1 ? event.key : event.key.toLowerCase();
  const held = [event.ctrlKey || event.metaKey ? "ctrl" : "", event.altKey ? "alt" : ""];
  if (event.shiftKey && key.length > 1) held.push("shift");
  return [...held.filter(Boolean), key].join("+");
}

function isWriting(element: HTMLElement): boolean {
  return element.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(element.tagName);
}
