import { expect, test } from "vitest";
import { piecesOf } from "../../src/components/diff/pieces";
import { highlight } from "../../src/components/code/highlight";

const SOURCES = {
  "a.py":
    'def greet(name: str) -> str:\r\n    """Say <b>hello</b> &amp;\n    to\tall."""\n    return f"{name!r:>{3}} \'&\'"\n',
  "a.tsx": 'const a = <p title="x">{`one\ntwo ${b && "</script>"} three`}</p>; // <img onerror=alert(1)>\n\n',
  "a.html": "<!doctype html>\n<script>\nlet x = '&lt;';\n</script>\n<style>p { color: red }</style>\n",
};

test.each(Object.entries(SOURCES))("the pieces of the lines of %s have exactly their text", (path, source) => {
  const lines = piecesOf(highlight(source, undefined, path)!);
  expect(lines.map((pieces) => pieces.map(({ text }) => text).join(""))).toEqual(source.split("\n"));
});

test("a string of several lines has its class in each of them", () => {
  const lines = piecesOf(highlight('a = """one\ntwo"""', undefined, "a.py")!);
  expect(lines.map((pieces) => pieces.at(-1))).toEqual([
    { text: '"""one', classes: ["hljs-string"] },
    { text: 'two"""', classes: ["hljs-string"] },
  ]);
});

test("pieces within pieces have the classes of all", () => {
  const [line] = piecesOf(highlight('f"{1}"', undefined, "a.py")!);
  expect(line).toContainEqual({ text: "1", classes: ["hljs-string", "hljs-subst", "hljs-number"] });
});
