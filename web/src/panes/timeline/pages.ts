/** Any event of a session by its number, loaded in pages as they are looked at. */

import type { EventRecord } from "../../events";

/** Events in a page. */
export const PAGE = 200;

/** Milliseconds between requests for pages. */
const PAUSE = 60;

/** Pages that are kept; those that were looked at longest ago go first. */
const KEPT = 20;

export class Pages {
  private readonly kept = new Map<number, EventRecord[]>();
  private readonly coming = new Set<number>();
  private wanted: number[] = [];
  private asking: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** Load the events after an id, ascending. */
    private readonly load: (after: number, limit: number) => Promise<EventRecord[]>,
    /** Called when there is more to be seen. */
    private readonly changed: () => void,
  ) {}

  /** The event, or null and it is on its way. */
  get(id: number): EventRecord | null {
    const page = Math.floor((id - 1) / PAGE);
    const events = this.kept.get(page);
    const found = events?.[id - 1 - page * PAGE];
    if (events && found) {
      this.kept.delete(page);
      this.kept.set(page, events);
      return found;
    }
    this.want(page);
    return null;
  }

  /** The newest event up to `id` that is wanted, among `most` events. */
  async back(id: number, wanted: (event: EventRecord) => boolean, most: number): Promise<EventRecord | null> {
    const oldest = Math.max(0, id - most);
    for (let page = Math.floor((id - 1) / PAGE); page >= 0 && (page + 1) * PAGE > oldest; page--) {
      const events = this.kept.get(page) ?? (await this.load(page * PAGE, PAGE));
      const found = events.findLast((event) => event.id <= id && event.id > oldest && wanted(event));
      if (found) return found;
    }
    return null;
  }

  /** Fetch the pages that were wanted last: who scrolls fast does not wait for all that is passed. */
  private want(page: number): void {
    if (this.wanted.at(-1) !== page) this.wanted = [...this.wanted.slice(-1), page];
    this.asking ??= setTimeout(() => {
      this.asking = undefined;
      for (const last of this.wanted) void this.fetch(last);
      this.wanted = [];
    }, PAUSE);
  }

  private async fetch(page: number): Promise<void> {
    if (this.coming.has(page)) return;
    this.coming.add(page);
    try {
      const events = await this.load(page * PAGE, PAGE);
      this.kept.set(page, events);
      for (const oldest of this.kept.keys()) {
        if (this.kept.size <= KEPT) break;
        this.kept.delete(oldest);
      }
      this.changed();
    } catch {
      // It is asked for again when it is looked at again; that the server is gone is told elsewhere.
    } finally {
      this.coming.delete(page);
    }
  }
}
