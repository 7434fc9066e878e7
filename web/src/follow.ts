// Follows a session's events by WebSocket: each once and in order, also across breaks of the connection.

import type { SessionView } from "../generated/types";
import { asEvent, type EventRecord, type JsonObject } from "./events";

/** Something said beside the log while it happens; nobody stores it. */
export type Transient =
  | { transient: "text"; after: number; subtask: number; text: string }
  | { transient: "output"; after: number; action: number; text: string }
  | { transient: "status"; after: number; text: string };

export interface Following {
  event(event: EventRecord): void;
  transient(piece: Transient): void;
  state(info: SessionView): void;
  connected(is: boolean): void;
  /** The server says that there is nothing to follow (any more). */
  ended(why: string): void;
}

export type Connect = (url: string) => WebSocket;

const MISSING = 4404;
const FIRST_WAIT = 200;
const LONGEST_WAIT = 4000;

export class Follower {
  private socket: WebSocket | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private wait = FIRST_WAIT;
  private closed = false;

  /** `cursor` is the id of the last event that is known; `url` gives the address of what comes after it. */
  constructor(
    private cursor: number,
    private readonly url: (after: number) => string,
    private readonly to: Following,
    private readonly connect: Connect = (address) => new WebSocket(address),
  ) {
    this.open();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Try at once, as when the browser is back on the net. */
  hurry(): void {
    if (this.timer === undefined || this.closed) return;
    clearTimeout(this.timer);
    this.open();
  }

  private open(): void {
    this.timer = undefined;
    const socket = this.connect(this.url(this.cursor));
    this.socket = socket;
    socket.onopen = () => {
      this.wait = FIRST_WAIT;
      this.to.connected(true);
    };
    socket.onmessage = (message) => {
      if (socket === this.socket && !this.closed) this.take(JSON.parse(String(message.data)) as JsonObject);
    };
    socket.onclose = (close) => {
      if (socket !== this.socket || this.closed) return;
      this.to.connected(false);
      if (close.code === MISSING) {
        this.closed = true;
        this.to.ended(close.reason || "there is no such session");
        return;
      }
      this.timer = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    };
  }

  private take(message: JsonObject): void {
    if ("transient" in message) {
      this.to.transient(message as unknown as Transient);
      return;
    }
    if ("state" in message) {
      this.to.state(message["state"] as unknown as SessionView);
      return;
    }
    const event = asEvent(message);
    if (event.id <= this.cursor) return;
    if (event.id !== this.cursor + 1) {
      this.socket?.close(); // something is missing: ask anew from where we stand
      return;
    }
    this.cursor = event.id;
    this.to.event(event);
  }
}
