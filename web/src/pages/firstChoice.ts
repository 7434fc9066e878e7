/** The model that a new user picks, with its key. */

import { api } from "../api";
import type { ModelChoice } from "../../generated/types";

export type Kind = "local" | "key" | "url";

export interface Choice {
  kind: Kind;
  local: string;
  provider: string;
  name: string;
  key: string;
  keep: boolean;
  url: string;
}

export function modelOf({ kind, local, provider, name, url }: Choice): ModelChoice {
  if (kind === "local") return { model: local, base_url: null };
  if (kind === "key") return { model: `${provider}:${name.trim()}`, base_url: null };
  return { model: name.trim(), base_url: url.trim() };
}

/** Use the key that the user typed, if any; a key that cannot be tested counts, as the model's own answer tests it. */
export async function takeKey({ kind, provider, url, key }: Choice, keep = false): Promise<void> {
  if (kind === "local" || !key) return;
  const owner = kind === "key" ? { provider } : { base_url: url.trim() };
  await api.setKey({ ...owner, key, keep, untested: true });
}
