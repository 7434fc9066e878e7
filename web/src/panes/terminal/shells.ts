// The user's own shells in the sandbox; they stay open while the page shows another pane, and end with the page.

import type { Terminal } from "@xterm/xterm";

import { keysOf } from "../../keyboard";
import type { SessionStore } from "../../store";
import { openScreen, type Screen } from "./screen";

/** The keys that leave a terminal: it takes all others but those of panes and of interrupting the agent. */
export const LEAVE = "ctrl+shift+arrowup";
const PAGE_KEYS = /^(ctrl\+shift\+arrowup|ctrl\+\.|alt\+[1-9])$/;

const NOT_RUNNING = 4409;
const ENDED = 1000;
const PIECE = 16 * 1024;
/** Bytes of output after which the page reports that it has shown them. */
const REPORTED = 64 * 1024;

/** Why a shell does not run: `startable` if the sandbox can be started for it. */
export interface ShellProblem {
  text: string;
  startable: boolean;
}

/** A terminal of the user and its connection with a shell. */
export class Shell {
  /** Null while the shell runs or is about to. */
  problem: ShellProblem | null = null;
  private readonly element = document.createElement("div");
  private screen: Screen | null = null;
  private socket: WebSocket | null = null;
  private error = "";
  private unreported = 0;

  constructor(
    readonly number: number,
    private readonly url: (rows: number, columns: number, start: boolean) => string,
    private readonly onChange: () => void,
  ) {
    this.element.className = "terminal-shell";
    this.element.addEventListener("keydown", (event) => {
      // The page's shortcuts, such as Escape, are the shell's while it has the focus.
      if (!PAGE_KEYS.test(keysOf(event))) event.stopPropagation();
    });
  }

  /** Show the terminal in a container; return a function that takes it out again. */
  show(container: HTMLElement): () => void {
    container.append(this.element);
    const first = this.screen === null;
    this.screen ??= this.open();
    const stop = this.screen.follow();
    if (first) this.start(false);
    return () => {
      stop();
      this.element.remove();
    };
  }

  /** Begin a shell, and the sandbox too if `startSandbox` is set. */
  start(startSandbox: boolean): void {
    const { xterm } = this.screen as Screen;
    this.problem = null;
    this.error = "";
    this.unreported = 0;
    const socket = new WebSocket(this.url(xterm.rows, xterm.cols, startSandbox));
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer | string>) => this.receive(socket, data);
    socket.onclose = ({ code }) => {
      if (socket === this.socket) this.lose(code);
    };
    this.socket = socket;
    this.onChange();
    xterm.focus();
  }

  close(): void {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
    this.screen?.xterm.dispose();
    this.element.remove();
  }

  private open(): Screen {
    const screen = openScreen(this.element, {});
    const { xterm } = screen;
    xterm.textarea?.setAttribute("aria-label", `Terminal ${this.number}`);
    xterm.attachCustomKeyEventHandler((event) => {
      if (PAGE_KEYS.test(keysOf(event))) return false;
      // The browser copies a selection and pastes, as in the rest of the page.
      const command = event.ctrlKey && !event.shiftKey && !event.altKey;
      return !(command && ((event.key === "c" && xterm.hasSelection()) || event.key === "v"));
    });
    takeInsertedText(xterm);
    xterm.onData((text) => this.type(new TextEncoder().encode(text)));
    xterm.onBinary((text) => this.type(Uint8Array.from(text, (byte) => byte.charCodeAt(0))));
    xterm.onResize(({ rows, cols }) => this.send(JSON.stringify({ rows, columns: cols })));
    return screen;
  }

  private type(bytes: Uint8Array<ArrayBuffer>): void {
    for (let first = 0; first < bytes.length; first += PIECE) this.send(bytes.subarray(first, first + PIECE));
  }

  private send(message: string | Uint8Array<ArrayBuffer>): void {
    const { socket } = this;
    if (socket?.readyState === WebSocket.OPEN) socket.send(message);
    // What is typed before the connection is open is the shell's too.
    else if (socket?.readyState === WebSocket.CONNECTING) socket.addEventListener("open", () => socket.send(message));
  }

  private receive(socket: WebSocket, data: ArrayBuffer | string): void {
    if (typeof data === "string") {
      const { error } = JSON.parse(data) as { error?: string };
      if (error) this.error = error;
      return;
    }
    this.screen?.xterm.write(new Uint8Array(data), () => {
      this.unreported += data.byteLength;
      if (this.unreported < REPORTED || socket !== this.socket) return;
      this.send(JSON.stringify({ shown: this.unreported }));
      this.unreported = 0;
    });
  }

  private lose(code: number): void {
    const text = code === ENDED ? "The shell has ended." : this.error || "The connection to the shell is lost.";
    this.problem = { text, startable: code === NOT_RUNNING };
    this.onChange();
  }
}

/** Type text that comes without a key, as from an emoji picker: xterm ignores it in its mode for screen readers. */
function takeInsertedText(xterm: Terminal): void {
  let pressed = false;
  xterm.textarea?.addEventListener("keydown", () => (pressed = true), true);
  xterm.textarea?.addEventListener("keyup", () => (pressed = false), true);
  xterm.textarea?.addEventListener("input", (event) => {
    const { inputType, data } = event as InputEvent;
    if (inputType === "insertText" && data && !pressed) xterm.input(data);
  });
}

/** The open shells of one session's page, and the chosen one; null means the agent's commands. */
export class Shells {
  private list: readonly Shell[] = [];
  private current: { shells: readonly Shell[]; chosen: Shell | null } = { shells: [], chosen: null };
  private opened = 0;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly session: SessionStore) {
    session.lifetime.addEventListener("abort", () => this.list.forEach((shell) => shell.close()));
  }

  readonly snapshot = () => this.current;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  add(): void {
    this.opened += 1;
    const shell = new Shell(this.opened, this.session.api.terminalUrl, () => this.set(this.current.chosen));
    this.list = [...this.list, shell];
    this.set(shell);
  }

  choose(shell: Shell | null): void {
    this.set(shell);
  }

  close(shell: Shell): void {
    shell.close();
    const index = this.list.indexOf(shell);
    this.list = this.list.filter((other) => other !== shell);
    this.set(this.list[Math.min(index, this.list.length - 1)] ?? null);
  }

  private set(chosen: Shell | null): void {
    this.current = { shells: this.list, chosen };
    for (const listener of this.listeners) listener();
  }
}

const shells = new WeakMap<SessionStore, Shells>();

export function shellsOf(session: SessionStore): Shells {
  const found = shells.get(session) ?? new Shells(session);
  shells.set(session, found);
  return found;
}
