/** A large output, loaded piece by piece without splitting a character. */

import { useMemo, useState } from "react";
import { api } from "../api";
import { useAsync } from "./useAsync";

export const PIECE = 64 * 1024;

export class Pager {
  private readonly decoder = new TextDecoder();

  /** `read` returns `length` bytes from `offset` on, fewer at the end. */
  constructor(
    private readonly size: number,
    private readonly read: (offset: number, length: number) => Promise<ArrayBuffer>,
    private offset = 0,
  ) {}

  get left(): number {
    return Math.max(0, this.size - this.offset);
  }

  /** Return the next piece. Throws the errors of `read`; call it again to retry. */
  async next(): Promise<string> {
    const piece = await this.read(this.offset, PIECE);
    if (piece.byteLength === 0) throw new Error("The output is shorter than the log says.");
    this.offset += piece.byteLength;
    return this.decoder.decode(piece, { stream: this.left > 0 });
  }
}

/** The pieces of a blob that are loaded so far, from byte `start` on; `more` loads the next one. */
export function usePager(blob: string, size: number, start = 0) {
  const pager = useMemo(() => new Pager(size, (offset, length) => api.readBlob(blob, offset, length), start), [blob]);
  const [pieces, setPieces] = useState<string[]>([]);
  const { busy, problem, run } = useAsync();
  const more = () =>
    run(async () => {
      const piece = await pager.next();
      setPieces((before) => [...before, piece]);
    });
  return { pieces, left: pager.left, busy, problem, more };
}
