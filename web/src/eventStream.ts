// Follows a session over WebSocket: every event once and in order, across reconnections.

import type { SessionView } from "../generated/types";
import { asEvent, type EventRecord, type JsonObject } from "./events";

/** Live output that the log does not store. */
export type LiveOutput =
  | { transient: "text"; after: number; subtask: number; text: string }
  | { transient: "output"; after: number; action: number; text: string }
  | { transient: "status"; after: number; text: string };

interface Listener {
  event(event: EventRecord): void;
  liveOutput(piece: LiveOutput): void;
  state(info: SessionView): void;
  connected(connected: boolean): void;
  /** The session does not exist, or no longer. */
  ended(reason: string): void;
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

  /** `cursor` is the id of the last known event; `url` returns the address that streams the events after it. */
  constructor(
    private cursor: number,
    private readonly url: (after: number) => string,
    private readonly listener: Listener,
    private readonly connect: Connect = (address) => new WebSocket(address),
  ) {
    this.open();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Reconnect now, for example when the browser is online again. */
  reconnect(): void {
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
      this.listener.connected(true);
    };
    socket.onmessage = (message) => {
      if (socket === this.socket && !this.closed) this.receive(JSON.parse(String(message.data)) as JsonObject);
    };
    socket.onclose = (close) => {
      if (socket !== this.socket || this.closed) return;
      this.listener.connected(false);
      if (close.code === MISSING) {
        this.closed = true;
        this.listener.ended(close.reason || "this session does not exist");
        return;
      }
      this.timer = setTimeout(() => this.open(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    };
  }

  private receive(message: JsonObject): void {
    if ("transient" in message) {
      this.listener.liveOutput(message as unknown as LiveOutput);
      return;
    }
    if ("state" in message && !("type" in message)) {
      // An event may have a state too, like that of a plan's task.
      this.listener.state(message["state"] as unknown as SessionView);
      return;
    }
    const event = asEvent(message);
    if (event.id <= this.cursor) return;
    if (event.id !== this.cursor + 1) {
      this.socket?.close(); // an event is missing: reconnect from the cursor
      return;
    }
    this.cursor = event.id;
    this.listener.event(event);
  }
}
