import type { Terminal } from "@xterm/xterm";

/** Characters that the terminal takes in one task of the page. */
const PIECE = 4_000;

/** Milliseconds before all is written anew: while earlier commands are loaded, the next ones follow at once. */
const PAUSE = 500;

/** Clears a terminal; unlike its method, it is in order with the text. */
const CLEAR = "\x1bc";

/** Writes to a terminal piece by piece, so that much text does not stop the page. */
export class Writer {
  private waiting = "";
  private busy = false;
  private stopped = false;
  private timer: number | undefined;

  constructor(private readonly xterm: Terminal) {}

  /** Write more text. */
  add(text: string): void {
    this.waiting += text;
    this.next();
  }

  /** Write the text instead of all text so far. */
  replace(text: string): void {
    this.waiting = CLEAR + text;
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => {
      this.timer = undefined;
      this.next();
    }, PAUSE);
  }

  stop(): void {
    this.stopped = true;
    this.waiting = "";
    window.clearTimeout(this.timer);
  }

  private next(): void {
    if (this.busy || this.timer !== undefined || !this.waiting) return;
    this.busy = true;
    // The rows for screen readers are laid out one by one, and old output would be read aloud: they come back at the end.
    if (this.waiting.startsWith(CLEAR)) this.xterm.options.screenReaderMode = false;
    const piece = this.waiting.slice(0, PIECE);
    this.waiting = this.waiting.slice(PIECE);
    this.xterm.write(piece, () => {
      this.busy = false;
      if (!this.waiting && !this.stopped) this.xterm.options.screenReaderMode = true;
      this.next();
    });
  }
}
