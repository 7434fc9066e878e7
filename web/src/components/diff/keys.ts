import type { KeyboardEvent } from "react";

/** Up and Down move between the lines' buttons, which would be too many for Tab. */
export function toNextLine(event: KeyboardEvent<HTMLElement>): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || event.target instanceof HTMLTextAreaElement) return;
  const buttons = [...event.currentTarget.querySelectorAll<HTMLButtonElement>(".line > button")];
  const next = buttons[buttons.indexOf(document.activeElement as HTMLButtonElement) + step];
  if (next === undefined) return;
  event.preventDefault();
  next.focus();
}
