import { useId } from "react";

interface Props<Value extends string> {
  label: string;
  options: Record<Value, string>;
  /** Undefined as long as nothing is chosen. */
  value: Value | undefined;
  onChange: (value: Value) => void;
}

export function RadioGroup<Value extends string>({ label, options, value, onChange }: Props<Value>) {
  const group = useId();
  return (
    <fieldset className="radio-group">
      <legend className="hidden">{label}</legend>
      {(Object.keys(options) as Value[]).map((option) => (
        <label key={option}>
          <input type="radio" name={group} checked={option === value} onChange={() => onChange(option)} />
          <span>{options[option]}</span>
        </label>
      ))}
    </fieldset>
  );
}
