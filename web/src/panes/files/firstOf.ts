/** Return the first bytes of a stream without loading the rest. */
export async function firstOf(
  stream: ReadableStream<Uint8Array>,
  limit: number,
): Promise<{ bytes: Uint8Array<ArrayBuffer>; whole: boolean }> {
  const reader = stream.getReader();
  const data = new Uint8Array(limit);
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { bytes: data.slice(0, size), whole: true };
    const room = value.subarray(0, limit - size);
    data.set(room, size);
    size += room.length;
    if (room.length < value.length) {
      await reader.cancel();
      return { bytes: data.slice(0, size), whole: false };
    }
  }
}
