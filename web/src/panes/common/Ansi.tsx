import { AnsiText } from "../../components/AnsiText";

/** Output of a program in its colours. */
export function Ansi({ text, label }: { text: string; label?: string }) {
  return (
    <pre className="pane-output" tabIndex={0} aria-label={label}>
      <AnsiText text={text} />
    </pre>
  );
}
