// The list of sessions, kept equal to the server's.

import { useCallback, useEffect, useRef, useState } from "react";
import { api, errorMessage } from "../api";
import { saveDraft } from "../chat/drafts";
import type { AgentState } from "../events";
import type { SessionRow } from "../../generated/types";
import { saveComments, writtenIn } from "../panes/changes/comments";
import { rowNeedsUser } from "../steering/attention";
import { hasAllWaiting, withPage, withRow } from "./rows";

interface SessionList {
  rows: SessionRow[] | null;
  /** Whether the rows are those of the current filter. */
  current: boolean;
  more: boolean;
  /** The number of sessions that need the user, on pages that are not loaded too. */
  waiting: number;
  problem: string;
  loadMore: () => void;
}

const PAGE = 50;
const LARGEST_PAGE = 500;
const PAUSE = 150;
const RECONNECT = 2000;
/** Milliseconds between two reloads for changes of sessions: a search reads the texts of all. */
const RELOAD = 1000;

/** `onRow`, which stays the same, gets each row that is loaded or has changed. */
export function useSessionList(
  q: string,
  state: AgentState | "",
  archived: boolean,
  onRow: (row: SessionRow) => void,
): SessionList {
  const [rows, setRows] = useState<SessionRow[] | null>(null);
  const wantedFilter = JSON.stringify([q, state, archived]);
  const [loadedFilter, setLoadedFilter] = useState("");
  const [next, setNext] = useState<string | null>(null);
  const [counted, setCounted] = useState(0);
  const [problem, setProblem] = useState("");
  const requests = useRef(0);
  /** The number of rows that the user asked for: a reload returns as many. */
  const wanted = useRef(PAGE);
  const filter = useRef(0);
  useEffect(() => {
    filter.current++;
    wanted.current = PAGE;
  }, [q, state, archived]);

  const load = useCallback(async () => {
    const request = ++requests.current;
    try {
      const limit = Math.min(LARGEST_PAGE, wanted.current);
      const page = await api.sessions({ q, state: state || null, archived, limit });
      if (request !== requests.current) return;
      page.sessions.forEach(onRow);
      setRows(page.sessions);
      setLoadedFilter(wantedFilter);
      setNext(page.next);
      setCounted(page.waiting);
      setProblem("");
    } catch (error) {
      if (request === requests.current) setProblem(errorMessage(error));
    }
  }, [q, state, archived, wantedFilter, onRow]);

  useEffect(() => {
    const timer = setTimeout(() => void load(), q ? PAUSE : 0);
    return () => clearTimeout(timer);
  }, [load, q]);

  const more = next !== null;
  const whole = rows !== null && hasAllWaiting(rows, more);
  const filtered = q !== "" || state !== "" || archived;
  const reload = useReload(load);
  const connected = useFollowedList((message) => {
    if ("session" in message) onRow(message.session);
    if ("deleted" in message) forget(message.deleted);
    if (filtered || !whole)
      reload(); // only the server can filter, and count the rows that are not loaded
    else if ("deleted" in message) setRows((known) => known?.filter((row) => row.id !== message.deleted) ?? null);
    else if ("session" in message) setRows((known) => known && withRow(known, message.session, more));
    else void load();
  });

  const loadMore = () => {
    if (next === null) return;
    const of = filter.current;
    api.sessions({ q, state: state || null, archived, before: next }).then(
      (page) => {
        if (of !== filter.current) return;
        page.sessions.forEach(onRow);
        wanted.current += page.sessions.length;
        requests.current++; // a reload under way would return fewer rows
        setRows((known) => withPage(known ?? [], page.sessions));
        setNext(page.next);
        setCounted(page.waiting);
      },
      (error: unknown) => setProblem(errorMessage(error)),
    );
  };
  const waiting = whole ? rows.filter(rowNeedsUser).length : counted;
  const offline = connected ? "" : "Not connected, retrying. The list may be out of date.";
  const current = loadedFilter === wantedFilter;
  // The next page of another filter would displace the rows that are under way.
  return { rows, current, more: more && current, waiting, problem: problem || offline, loadMore };
}

/** Drop what was written for a session that is gone: it would keep the page from a reload. */
function forget(session: string): void {
  saveDraft(session, { text: "", images: [] });
  saveComments(session, []);
  writtenIn(session).clear();
}

type Message = { ready: true } | { session: SessionRow } | { deleted: string };

/** Return a function that calls the newest `work`, once for all calls within RELOAD milliseconds. */
function useReload(work: () => Promise<void>): () => void {
  const newest = useRef(work);
  const last = useRef(0);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    newest.current = work;
  });
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    const reload = () => {
      timer.current = undefined;
      last.current = Date.now();
      void newest.current();
    };
    timer.current ??= setTimeout(reload, Math.max(0, last.current + RELOAD - Date.now()));
  };
}

/** Follow the list, and return whether it is connected; after "ready" of a reconnection it may have changed. */
function useFollowedList(listener: (message: Message) => void): boolean {
  const [connected, setConnected] = useState(true);
  const current = useRef(listener);
  useEffect(() => {
    current.current = listener;
  });
  useEffect(() => {
    let socket: WebSocket;
    let timer: ReturnType<typeof setTimeout>;
    let closed = false;
    const open = () => {
      socket = new WebSocket(api.listUrl());
      socket.onmessage = (message) => current.current(JSON.parse(String(message.data)) as Message);
      socket.onopen = () => setConnected(true);
      socket.onclose = () => {
        if (closed) return;
        setConnected(false);
        timer = setTimeout(open, RECONNECT);
      };
    };
    open();
    return () => {
      closed = true;
      clearTimeout(timer);
      socket.close();
    };
  }, []);
  return connected;
}
