import { exact } from "../wording/text";

/** An error message; nothing if there is none. */
export function Problem({ text }: { text: string }) {
  return text ? (
    <p className="error-text" role="alert">
      {exact(text)}
    </p>
  ) : null;
}
