/** The first bytes of something long, without loading the rest. */
export async function firstOf(
  stream: ReadableStream<Uint8Array>,
  most: number,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; whole: boolean }> {
  const reader = stream.getReader();
  const found = new Uint8Array(most);
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: found.slice(0, size), whole: true };
    const room = value.subarray(0, most - size);
    found.set(room, size);
    size += room.length;
    if (room.length < value.length) {
      await reader.cancel();
      return { bytes: found.slice(0, size), whole: false };
    }
  }
}
