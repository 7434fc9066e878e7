import type { ModelInfo } from "../../generated/types";

/** A provider of models, or an OpenAI-compatible server: the other one is "". */
export interface Service {
  provider: string;
  baseUrl: string;
  /** The state of its key, "" if unknown. */
  about: string;
  /** Whether its key is missing. */
  missing: boolean;
}

export function isProvider({ name }: ModelInfo): boolean {
  return name.endsWith(":NAME");
}

/** The part of a model's name before its first colon. */
export function prefixOf({ name }: ModelInfo): string {
  return name.split(":")[0] ?? "";
}

export function providerOf(info: ModelInfo): Service {
  return { provider: prefixOf(info), baseUrl: "", about: info.about, missing: !info.ready };
}

export function serverAt(baseUrl: string): Service {
  return { provider: "", baseUrl, about: "", missing: false };
}

/** The service that answers for a model; null for a model of this machine and for an unknown name. */
export function serviceOf(model: string, baseUrl: string, models: readonly ModelInfo[]): Service | null {
  if (/^(local|scripted):/.test(model)) return null;
  if (baseUrl) return serverAt(baseUrl);
  const info = models.find((one) => isProvider(one) && model.startsWith(`${prefixOf(one)}:`));
  return info === undefined ? null : providerOf(info);
}
