import type { ApplyPreview } from "../../generated/types";
import { useLoaded } from "../components/useLoaded";
import { useFilesVersion } from "../panes/common/useFilesVersion";
import { type SessionStore, useSessionPart } from "../store";

/** What an apply would change; null while the session runs, as its files then change, or unless it is `wanted`. */
export function useApplyPreview(store: SessionStore, wanted = true) {
  const running = useSessionPart(store, ({ info }) => info.state === "running" || info.state === "loading");
  const applies = useSessionPart(store, (now) => now.applies);
  const version = useFilesVersion(store);
  return useLoaded<ApplyPreview | null>(
    async () => (wanted && !running ? store.api.apply.preview() : null),
    [store, wanted && !running, version, applies],
  );
}
