/** A large output read piece by piece, without a character cut in two at a piece's end. */

export const PIECE = 64 * 1024;

/** Return bytes `offset` to `offset + length` of the whole; fewer at its end. */
export type ReadBytes = (offset: number, length: number) => Promise<ArrayBuffer>;

export class Pager {
  private readonly decoder = new TextDecoder();
  private offset = 0;

  constructor(
    private readonly size: number,
    private readonly read: ReadBytes,
  ) {}

  get left(): number {
    return Math.max(0, this.size - this.offset);
  }

  /** Return the next piece as text. Throws what `read` throws, after which it can be called again. */
  async next(): Promise<string> {
    const found = await this.read(this.offset, PIECE);
    if (found.byteLength === 0) throw new Error("The output is shorter than it was said to be.");
    this.offset += found.byteLength;
    return this.decoder.decode(found, { stream: this.left > 0 });
  }
}
