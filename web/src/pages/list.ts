// The list of sessions, kept equal to the server's.

import { useCallback, useEffect, useRef, useState } from "react";
import { api, errorMessage } from "../api";
import type { AgentState } from "../events";
import type { SessionRow } from "../../generated/types";

interface SessionList {
  rows: SessionRow[] | null;
  more: boolean;
  problem: string;
  loadMore: () => void;
}

const PAUSE = 150;
const RECONNECT = 2000;

export function useSessionList(q: string, state: AgentState | "", archived: boolean): SessionList {
  const [rows, setRows] = useState<SessionRow[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const requests = useRef(0);

  const load = useCallback(async () => {
    const request = ++requests.current;
    try {
      const page = await api.sessions({ q, state: state || null, archived });
      if (request !== requests.current) return;
      setRows(page.sessions);
      setNext(page.next);
      setProblem("");
    } catch (error) {
      if (request === requests.current) setProblem(errorMessage(error));
    }
  }, [q, state, archived]);

  useEffect(() => {
    const timer = setTimeout(() => void load(), q ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [load, q]);

  const filtered = q !== "" || state !== "" || archived;
  useFollowedList(
    useCallback(
      (message) => {
        if ("deleted" in message) setRows((known) => known?.filter((row) => row.id !== message.deleted) ?? null);
        else if ("session" in message && !filtered) setRows((known) => known && withRow(known, message.session));
        else void load(); // only the server can filter
      },
      [filtered, load],
    ),
  );

  const loadMore = () => {
    if (next === null) return;
    const request = requests.current;
    api.sessions({ q, state: state || null, archived, before: next }).then(
      (page) => {
        if (request !== requests.current) return;
        setRows((known) => [...(known ?? []), ...page.sessions]);
        setNext(page.next);
      },
      (error: unknown) => setProblem(errorMessage(error)),
    );
  };
  return { rows, more: next !== null, problem, loadMore };
}

function withRow(rows: readonly SessionRow[], row: SessionRow): SessionRow[] {
  if (row.archived) return rows.filter(({ id }) => id !== row.id);
  if (rows.some(({ id }) => id === row.id)) return rows.map((known) => (known.id === row.id ? row : known));
  const last = rows.at(-1);
  if (last !== undefined && row.created < last.created) return [...rows]; // the row is on a page not loaded yet
  return [...rows, row].sort((a, b) => (a.created < b.created ? 1 : -1));
}

type Message = { ready: true } | { session: SessionRow } | { deleted: string };

/** Follow the changes of the list; "ready" also follows a reconnection, after which the list may have changed. */
function useFollowedList(listener: (message: Message) => void): void {
  const current = useRef(listener);
  useEffect(() => {
    current.current = listener;
  });
  useEffect(() => {
    let socket: WebSocket;
    let timer: ReturnType<typeof setTimeout>;
    let closed = false;
    const open = () => {
      socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/api/follow`);
      socket.onmessage = (message) => current.current(JSON.parse(String(message.data)) as Message);
      socket.onclose = () => {
        if (!closed) timer = setTimeout(open, RECONNECT);
      };
    };
    open();
    return () => {
      closed = true;
      clearTimeout(timer);
      socket.close();
    };
  }, []);
}
