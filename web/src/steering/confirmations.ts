/** The confirmation modes, each with its meaning. */

import type { Confirmation } from "../events";

export const CONFIRMATIONS: [Confirmation, string][] = [
  ["never", "Never: it works in a sandbox, on a copy"],
  ["risky", "Before risky actions"],
  ["always", "Before every action that does more than read"],
];
