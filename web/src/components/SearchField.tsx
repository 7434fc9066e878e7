import { useRef } from "react";
import { useShortcuts } from "../keyboard";

interface Props {
  label: string;
  placeholder: string;
  value: string;
  onChange: (value: string) => void;
}

/** The search of a page, which the key / reaches and Escape empties. */
export function SearchField({ label, placeholder, value, onChange }: Props) {
  const input = useRef<HTMLInputElement>(null);
  useShortcuts([{ keys: "/", label: "Search", run: () => input.current?.focus() }]);
  return (
    <input
      ref={input}
      className="grow"
      type="search"
      aria-label={label}
      placeholder={placeholder}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || !value || event.nativeEvent.isComposing) return;
        event.preventDefault();
        event.stopPropagation(); // for the page, Escape interrupts the agent
        onChange("");
      }}
    />
  );
}
