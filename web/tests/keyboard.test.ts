import { expect, test } from "vitest";
import { keysOf } from "../src/keyboard";
import { listPath, pageOf, sessionPath } from "../src/router";

const press = { key: "", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };

test("a key press has one name, whatever the keyboard", () => {
  expect(keysOf({ ...press, key: "?", shiftKey: true })).toBe("?");
  expect(keysOf({ ...press, key: ".", metaKey: true })).toBe("ctrl+.");
  expect(keysOf({ ...press, key: "Escape" })).toBe("escape");
  expect(keysOf({ ...press, key: "Enter", ctrlKey: true, shiftKey: true })).toBe("ctrl+shift+enter");
});

test("a page's address leads back to the page", () => {
  const address = new URL(sessionPath("abc123", "timeline", 7), "http://here");
  expect(pageOf(address)).toEqual({ name: "session", id: "abc123", pane: "timeline", event: 7 });
  expect(pageOf({ pathname: "/", search: "" })).toEqual({ name: "sessions", q: "", state: "", archived: false });
  const list = new URL(listPath("a b", "paused", true), "http://localhost");
  expect(pageOf(list)).toEqual({ name: "sessions", q: "a b", state: "paused", archived: true });
  expect(pageOf({ pathname: "/welcome", search: "" })).toEqual({ name: "first-run" });
});
