/** Return a proposed edit as a unified diff. */
export function editPatch(old: string, replacement: string): string {
  const before = old.split("\n");
  const after = replacement.split("\n");
  let top = 0;
  while (top < before.length && top < after.length && before[top] === after[top]) top++;
  let end = 0;
  while (end < before.length - top && end < after.length - top && before.at(-1 - end) === after.at(-1 - end)) end++;
  const lines = [
    ...before.slice(0, top).map((line) => ` ${line}`),
    ...before.slice(top, before.length - end).map((line) => `-${line}`),
    ...after.slice(top, after.length - end).map((line) => `+${line}`),
    ...before.slice(before.length - end).map((line) => ` ${line}`),
  ];
  return [`@@ -1,${before.length} +1,${after.length} @@`, ...lines, ""].join("\n");
}
