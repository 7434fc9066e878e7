// Light or dark: as the system has it, or as the user chose.

export type Theme = "system" | "light" | "dark";

const KEY = "handiwork.theme";

export function theme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function setTheme(wanted: Theme): void {
  if (wanted === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, wanted);
  begin();
}

/** Show the page as was chosen. */
export function begin(): void {
  const chosen = theme();
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}
