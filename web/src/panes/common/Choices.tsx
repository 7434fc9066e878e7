import { useId } from "react";

/** A few things of which one is chosen. */
export function Choices<Choice extends string>({
  name,
  choices,
  chosen,
  choose,
}: {
  name: string;
  choices: Record<Choice, string>;
  chosen: Choice;
  choose: (choice: Choice) => void;
}) {
  const group = useId();
  return (
    <fieldset className="pane-choices">
      <legend className="hidden">{name}</legend>
      {(Object.keys(choices) as Choice[]).map((choice) => (
        <label key={choice}>
          <input
            type="radio"
            name={group}
            checked={choice === chosen}
            onChange={() => {
              choose(choice);
            }}
          />
          <span>{choices[choice]}</span>
        </label>
      ))}
    </fieldset>
  );
}
