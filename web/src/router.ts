// The current page; the address is the only place that stores it.

import { useSyncExternalStore } from "react";

export type Page =
  | { name: "sessions"; q: string; state: string; archived: boolean }
  | { name: "first-run" }
  | { name: "evaluation"; q: string; status: string }
  | { name: "session"; id: string; pane: string; event: number | null };

export function pageOf(address: { pathname: string; search: string }): Page {
  const [first, id] = address.pathname.split("/").filter(Boolean);
  if (first === "welcome") return { name: "first-run" };
  if (first === "s" && id) {
    const query = new URLSearchParams(address.search);
    const event = Number(query.get("event"));
    return { name: "session", id, pane: query.get("pane") ?? "", event: event > 0 ? event : null };
  }
  const query = new URLSearchParams(address.search);
  if (first === "eval") return { name: "evaluation", q: query.get("q") ?? "", status: query.get("status") ?? "" };
  return {
    name: "sessions",
    q: query.get("q") ?? "",
    state: query.get("state") ?? "",
    archived: query.get("archived") === "true",
  };
}

export function sessionPath(id: string, pane = "", event: number | null = null): string {
  const query = new URLSearchParams();
  if (pane) query.set("pane", pane);
  if (event !== null) query.set("event", String(event));
  const rest = query.toString();
  return `/s/${id}${rest ? `?${rest}` : ""}`;
}

export function listPath(q: string, state: string, archived: boolean): string {
  const query = new URLSearchParams({
    ...(q && { q }),
    ...(state && { state }),
    ...(archived && { archived: "true" }),
  }).toString();
  return query ? `/?${query}` : "/";
}

/** The list of an evaluation's rollouts. */
export function evaluationPath(q = "", status = ""): string {
  const query = new URLSearchParams({ ...(q && { q }), ...(status && { status }) }).toString();
  return query ? `/eval?${query}` : "/eval";
}

const NAVIGATION = "handiwork:navigation";

/** Show another page; `replace` leaves this one out of the browser's history. */
export function go(path: string, replace = false): void {
  if (path === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", path);
  window.dispatchEvent(new Event(NAVIGATION));
}

function subscribe(listener: () => void): () => void {
  window.addEventListener("popstate", listener);
  window.addEventListener(NAVIGATION, listener);
  return () => {
    window.removeEventListener("popstate", listener);
    window.removeEventListener(NAVIGATION, listener);
  };
}

function useAddress(): string {
  return useSyncExternalStore(subscribe, () => location.pathname + location.search);
}

export function usePage(): Page {
  useAddress();
  return pageOf(location);
}
