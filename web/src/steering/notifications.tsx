/** The browser's notifications of sessions, and the switch for them. */

import { useState } from "react";
import { Button } from "../components/Button";
import { go, sessionPath } from "../router";

const WANTED = "handiwork:notifications";

/** Notify the user of a session, if they want it; two pages notify once. */
export function notify(session: string, title: string, text: string): void {
  if (!wanted()) return;
  const path = sessionPath(session);
  try {
    const notification = new Notification(text, { body: title, tag: path });
    notification.onclick = () => {
      window.focus();
      if (location.pathname !== path) go(path);
      notification.close();
    };
  } catch {
    // Chrome on Android has the class, but lets only service workers notify.
  }
}

/** Switches the notifications; nothing if the browser has none. `when` is what they tell of. */
export function NotificationSwitch({ when }: { when: string }) {
  const [on, setOn] = useState(wanted);
  if (!("Notification" in window)) return null;
  const toggle = async () => {
    if (on) localStorage.removeItem(WANTED);
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "yes");
    setOn(wanted());
  };
  return (
    <Button kind="quiet" label={on ? "Stop notifying me" : `Notify me when ${when}`} onClick={() => void toggle()}>
      <Bell on={on} />
    </Button>
  );
}

function wanted(): boolean {
  return "Notification" in window && localStorage.getItem(WANTED) === "yes";
}

function Bell({ on }: { on: boolean }) {
  return (
    <svg width="18" height="18" viewBox="0 0 24 24" fill={on ? "currentColor" : "none"} aria-hidden="true">
      <path
        d="M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4"
        stroke="currentColor"
        strokeWidth="2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
      {!on && <path d="M3 3l18 18" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />}
    </svg>
  );
}
