import hljs from "highlight.js/lib/common";

const ENDINGS: Record<string, string> = { toml: "ini", cfg: "ini", tsx: "typescript", jsx: "javascript", h: "c" };

/** Return a text as HTML with its colours, all of the text escaped; null for a language that is not known. */
export function highlight(text: string, language?: string, path?: string): string | null {
  const name = path?.split("/").at(-1)?.toLowerCase() ?? "";
  const ending = name.includes(".") ? (name.split(".").at(-1) ?? "") : name;
  const wanted = language ?? ENDINGS[ending] ?? ending;
  if (!hljs.getLanguage(wanted)) return null;
  return hljs.highlight(text, { language: wanted, ignoreIllegals: true }).value;
}
