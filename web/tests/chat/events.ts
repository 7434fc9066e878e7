/** Events as the server sends them, for the tests of the chat. */

import type { EventRecord, EventType, Of } from "../../src/events";

const NONE = { schema: 1, timestamp: "2026-01-02T03:04:05Z", cause: null, subtask: 0 };

/** An event with what a test says of it. */
export function event<T extends EventType>(type: T, id: number, fields: Partial<Of<T>> = {}): Of<T> {
  const action = type.endsWith("Action");
  const own = action ? { thought: "", completion: null, tool_call_id: null } : {};
  const printed = type.endsWith("Observation") ? { content: "", tail: "", size: 0, blob: null } : {};
  const source = action ? "agent" : "environment";
  return { ...NONE, ...own, ...printed, type, id, source, ...fields } as Of<T>;
}

export function shell(id: number, command: string, fields: Partial<Of<"CmdRunAction">> = {}): EventRecord {
  return event("CmdRunAction", id, { command, is_input: false, background: false, timeout: null, ...fields });
}

export function printed(id: number, cause: number, content: string, exit_code: number | null = 0) {
  return event("CmdOutputObservation", id, {
    cause,
    content,
    exit_code,
    command: "",
    status: "done",
    cwd: "",
    job: "",
  });
}
