import { type ReactNode, useEffect, useState } from "react";

/** Milliseconds for which the button says that it has copied. */
const SAID = 1500;

/** Something with a button that copies its `text`; the button shows while the mouse or the focus is on it. */
export function Copyable({ text, name, children }: { text: string; name: string; children: ReactNode }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    const timer = copied ? setTimeout(() => setCopied(false), SAID) : undefined;
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <div className="copyable">
      {children}
      <button
        type="button"
        className="button copy"
        aria-label={copied ? "Copied" : `Copy ${name}`}
        onClick={() => void copy(text).then(setCopied)}
      >
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

/** Return whether the text is in the clipboard. */
async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Pages that come from another machine over plain HTTP have no clipboard.
    const field = document.createElement("textarea");
    field.value = text;
    field.className = "hidden";
    document.body.append(field);
    field.select();
    const copied = document.execCommand("copy");
    field.remove();
    return copied;
  }
}
