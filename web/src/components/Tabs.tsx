import { useEffect, useId, useRef, type KeyboardEvent, type ReactNode } from "react";

interface Props {
  parts: readonly { name: string; title: string }[];
  shown: string;
  onShow: (name: string) => void;
  children: ReactNode;
}

/** Tabs with the one part that is shown; arrows move between them. */
export function Tabs({ parts, shown, onShow, children }: Props) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [shown]);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const place = parts.findIndex((part) => part.name === shown);
    const next = parts[(place + step + parts.length) % parts.length];
    if (next === undefined) return;
    event.preventDefault();
    onShow(next.name);
    list.current?.querySelector<HTMLElement>(`[data-name="${next.name}"]`)?.focus();
  };
  return (
    <>
      <div className="tabs" role="tablist" aria-label="Panes" ref={list} onKeyDown={onKeyDown}>
        {parts.map(({ name, title }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-name={name}
            aria-selected={name === shown}
            aria-controls={`${id}-panel`}
            tabIndex={name === shown ? 0 : -1}
            onClick={() => onShow(name)}
          >
            {title}
          </button>
        ))}
      </div>
      <div className="pane" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${shown}`}>
        {children}
      </div>
    </>
  );
}
