import hljs from "highlight.js/lib/common";

const ENDINGS: Record<string, string> = { toml: "ini", cfg: "ini", tsx: "typescript", jsx: "javascript", h: "c" };

/** Return the text as escaped, highlighted HTML; null for an unknown language. */
export function highlight(text: string, language?: string, path?: string): string | null {
  const name = path?.split("/").at(-1)?.toLowerCase() ?? "";
  const ending = name.includes(".") ? (name.split(".").at(-1) ?? "") : name;
  const chosen = language ?? ENDINGS[ending] ?? ending;
  if (!hljs.getLanguage(chosen)) return null;
  return hljs.highlight(text, { language: chosen, ignoreIllegals: true }).value;
}
