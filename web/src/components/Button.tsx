import type { ButtonHTMLAttributes } from "react";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  kind?: "plain" | "primary" | "danger" | "quiet";
  /** The name of a button that shows only an icon. */
  label?: string;
}

export function Button({ kind = "plain", label, className = "", ...rest }: Props) {
  return <button type="button" className={`button ${kind} ${className}`} aria-label={label} title={label} {...rest} />;
}
