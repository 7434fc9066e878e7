// A server of one session for tests: its events over HTTP and WebSocket, as Handiwork's server gives them.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket as Client, WebSocketServer, type WebSocket as Socket } from "ws";
import type { EventRecord, EventType, Of } from "../src/events";
import { EMPTY } from "../src/store";
import type { SessionView } from "../generated/types";

const FIELDS = { schema: 1, timestamp: "2026-01-01T00:00:00Z", source: "agent", cause: null, subtask: 0 };

/** Return an event of a type with the fields that matter to a test. */
export function eventOf<T extends EventType>(type: T, id: number, fields: Partial<Of<T>> = {}): Of<T> {
  return { ...FIELDS, thought: "", content: "", type, id, ...fields } as unknown as Of<T>;
}

const INFO: SessionView = {
  ...EMPTY,
  id: "abc",
  title: "a task",
  agent: "CodeActAgent",
  model: "scripted",
  workspace: "/workspace",
  archived: false,
  read_only: false,
  interrupted: false,
  spent: null,
  added: null,
  deleted: null,
  state: "running",
  created: "2026-01-01T00:00:00Z",
  updated: "2026-01-01T00:00:00Z",
  parent: null,
  parent_event: 0,
  head: 0,
};

export class Sessions {
  events: EventRecord[] = [];
  info: SessionView = INFO;
  /** The cursors that followers came with. */
  cursors: number[] = [];
  /** Say to followers that there is no such session. */
  refuse = false;
  /** Milliseconds until a follower gets its first state. */
  thinking = 0;
  private sent = new Map<Socket, number>();

  private constructor(
    private readonly server: Server,
    private readonly sockets: WebSocketServer,
  ) {
    server.on("request", (request, answer) => {
      const { pathname, searchParams } = new URL(request.url ?? "", "http://here");
      answer.setHeader("content-type", "application/json");
      const found = pathname.endsWith("/events")
        ? this.page(searchParams)
        : pathname.endsWith("/tree")
          ? { sessions: [{ ...rowOf(this.info), id: "a", title: "the origin" }, rowOf(this.info)] }
          : this.info;
      answer.end(JSON.stringify(found));
    });
    sockets.on("connection", (socket, request) => {
      if (this.refuse) {
        socket.close(4404, "no such session");
        return;
      }
      const after = Number(new URL(request.url ?? "", "http://here").searchParams.get("after"));
      this.cursors.push(after);
      this.sent.set(socket, after);
      socket.on("close", () => this.sent.delete(socket));
      setTimeout(() => socket.send(JSON.stringify({ state: this.info })), this.thinking);
      this.send();
    });
  }

  static async start(): Promise<Sessions> {
    const server = createServer();
    const sessions = new Sessions(server, new WebSocketServer({ server }));
    await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const fetched = globalThis.fetch;
    globalThis.fetch = (path, init) => fetched(String(path).startsWith("/") ? origin + String(path) : path, init);
    Object.assign(globalThis, { location: { origin } });
    return sessions;
  }

  /** Append events and send them, each message as it is to every follower. */
  say(...events: EventRecord[]): void {
    this.events.push(...events);
    this.send();
  }

  /** Send a state with some fields changed. */
  change(fields: Partial<SessionView>): void {
    this.info = { ...this.info, ...fields };
    this.tell({ state: this.info });
  }

  tell(message: object): void {
    for (const socket of this.sent.keys()) socket.send(JSON.stringify(message));
  }

  /** Break all connections without a word, as when the network goes. */
  cut(): void {
    for (const socket of this.sent.keys()) socket.terminate();
  }

  stop(): void {
    this.cut();
    this.sockets.close();
    this.server.closeAllConnections();
    this.server.close();
  }

  get followers(): number {
    return this.sent.size;
  }

  private send(): void {
    for (const [socket, after] of this.sent) {
      for (const event of this.events.slice(after)) socket.send(JSON.stringify(event));
      this.sent.set(socket, this.events.length);
    }
  }

  private page(query: URLSearchParams): object {
    const limit = Number(query.get("limit"));
    const after = query.get("after");
    const before = Number(query.get("before") ?? this.events.length + 1);
    const found =
      after === null
        ? this.events.slice(0, before - 1).slice(-limit)
        : this.events.slice(Number(after), Number(after) + limit);
    return { events: found, head: this.events.length };
  }
}

function rowOf({
  id,
  title,
  agent,
  model,
  workspace,
  state,
  created,
  updated,
  parent,
  parent_event,
  head,
}: SessionView) {
  return { id, title, agent, model, workspace, state, created, updated, parent, parent_event, head };
}

export const connect = (url: string): WebSocket => new Client(url) as unknown as WebSocket;
