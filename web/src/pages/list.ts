// The list of sessions: found by the server, and kept as it is there while it is shown.

import { useCallback, useEffect, useRef, useState } from "react";
import { api, said } from "../api";
import type { SessionRow } from "../../generated/types";

export interface SessionList {
  rows: SessionRow[] | null;
  more: boolean;
  problem: string;
  loadMore: () => void;
}

const PAUSE = 150;
const AGAIN = 2000;

export function useSessionList(q: string, state: string): SessionList {
  const [rows, setRows] = useState<SessionRow[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const asked = useRef(0);

  const load = useCallback(async () => {
    const mine = ++asked.current;
    try {
      const page = await api.sessions({ q, state });
      if (mine !== asked.current) return;
      setRows(page.sessions);
      setNext(page.next);
      setProblem("");
    } catch (error) {
      if (mine === asked.current) setProblem(said(error));
    }
  }, [q, state]);

  useEffect(() => {
    const timer = setTimeout(() => void load(), q ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [load, q]);

  const filtered = q !== "" || state !== "";
  useFollowedList(
    useCallback(
      (message) => {
        if ("deleted" in message) setRows((known) => known?.filter((row) => row.id !== message.deleted) ?? null);
        else if ("session" in message && !filtered) setRows((known) => known && withRow(known, message.session));
        else void load(); // whether it is among those that are looked for only the server knows
      },
      [filtered, load],
    ),
  );

  const loadMore = () => {
    if (next === null) return;
    const mine = asked.current;
    api.sessions({ q, state, before: next }).then(
      (page) => {
        if (mine !== asked.current) return;
        setRows((known) => [...(known ?? []), ...page.sessions]);
        setNext(page.next);
      },
      (error: unknown) => setProblem(said(error)),
    );
  };
  return { rows, more: next !== null, problem, loadMore };
}

export function withRow(rows: readonly SessionRow[], row: SessionRow): SessionRow[] {
  if (rows.some(({ id }) => id === row.id)) return rows.map((known) => (known.id === row.id ? row : known));
  const last = rows.at(-1);
  if (last !== undefined && row.created < last.created) return [...rows]; // it is on a page that is not loaded
  return [...rows, row].sort((one, other) => (one.created < other.created ? 1 : -1));
}

type Message = { ready: true } | { session: SessionRow } | { deleted: string };

/** Hear what changes; "ready" comes again after a break, since when anything may have changed. */
function useFollowedList(hear: (message: Message) => void): void {
  const current = useRef(hear);
  useEffect(() => {
    current.current = hear;
  });
  useEffect(() => {
    let socket: WebSocket;
    let timer: ReturnType<typeof setTimeout>;
    let left = false;
    const open = () => {
      socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/follow`);
      socket.onmessage = (message) => current.current(JSON.parse(String(message.data)) as Message);
      socket.onclose = () => {
        if (!left) timer = setTimeout(open, AGAIN);
      };
    };
    open();
    return () => {
      left = true;
      clearTimeout(timer);
      socket.close();
    };
  }, []);
}
