/** All events of a session by id, loaded in pages on demand. */

import type { EventRecord } from "../../events";

/** Events per page. */
export const PAGE = 200;

/** Milliseconds between requests for pages. */
const PAUSE = 60;

/** The most pages requested at a time. */
const REQUESTS = 4;

/** The most pages cached, enough for each visible line of a filtered list; the least recently used ones are dropped. */
const CACHED = 80;

export class Pages {
  private readonly cache = new Map<number, EventRecord[]>();
  private readonly loading = new Set<number>();
  private queue: number[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** Load the events after an id, ascending. */
    private readonly load: (after: number, limit: number) => Promise<EventRecord[]>,
    /** Called when a page is loaded. */
    private readonly onLoad: () => void,
  ) {}

  /** Return the event, or null while its page is loading. */
  get(id: number): EventRecord | null {
    const page = Math.floor((id - 1) / PAGE);
    const events = this.cache.get(page);
    const event = events?.[id - 1 - page * PAGE];
    if (events && event) {
      this.cache.delete(page);
      this.cache.set(page, events);
      return event;
    }
    this.request(page);
    return null;
  }

  /** Return the newest match among the `limit` events up to `id`. */
  async findLast(id: number, matches: (event: EventRecord) => boolean, limit: number): Promise<EventRecord | null> {
    const oldest = Math.max(0, id - limit);
    for (let page = Math.floor((id - 1) / PAGE); page >= 0 && (page + 1) * PAGE > oldest; page--) {
      const cached = this.cache.get(page);
      const last = Math.min(id, (page + 1) * PAGE) - page * PAGE; // the newest page may have grown since
      const events = cached && cached.length >= last ? cached : await this.load(page * PAGE, PAGE);
      const match = events.findLast((event) => event.id <= id && event.id > oldest && matches(event));
      if (match) return match;
    }
    return null;
  }

  /** Load the last requested pages only, so that fast scrolling does not wait for every page it passes. */
  private request(page: number): void {
    if (!this.queue.includes(page)) this.queue = [...this.queue.slice(1 - REQUESTS), page];
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      for (const last of this.queue) void this.fetch(last);
      this.queue = [];
    }, PAUSE);
  }

  private async fetch(page: number): Promise<void> {
    if (this.loading.has(page)) return;
    this.loading.add(page);
    try {
      const events = await this.load(page * PAGE, PAGE);
      this.cache.set(page, events);
      for (const oldest of this.cache.keys()) {
        if (this.cache.size <= CACHED) break;
        this.cache.delete(oldest);
      }
      this.onLoad();
    } catch {
      // The next access loads the page again; the session page shows a lost connection.
    } finally {
      this.loading.delete(page);
    }
  }
}
