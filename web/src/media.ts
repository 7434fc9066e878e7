import { useSyncExternalStore } from "react";

const phone = typeof matchMedia === "undefined" ? null : matchMedia("(width <= 800px)");

/** Whether the window is too narrow for chat and panes side by side. */
export function usePhone(): boolean {
  return useSyncExternalStore(
    (listener) => {
      phone?.addEventListener("change", listener);
      return () => phone?.removeEventListener("change", listener);
    },
    () => phone?.matches ?? false,
  );
}
