/** Templates of new sessions, kept in this browser. */

import { useState } from "react";
import { Button } from "../components/Button";
import { deleteTemplate, type Form, saveTemplate, templates } from "./form";

export function TemplateField({ form, onChoose }: { form: Form; onChoose: (form: Form) => void }) {
  const [saved, setSaved] = useState(templates);
  const [chosen, setChosen] = useState("");
  const [name, setName] = useState<string | null>(null);
  const save = () => {
    const given = name?.trim();
    if (!given) return;
    setSaved(saveTemplate({ name: given, form }));
    setChosen(given);
    setName(null);
  };
  return (
    <div className="starting-path">
      <select
        className="grow"
        aria-label="Template"
        value={chosen}
        disabled={saved.length === 0}
        onChange={(event) => {
          setChosen(event.target.value);
          const template = saved.find(({ name }) => name === event.target.value);
          if (template) onChoose(template.form);
        }}
      >
        <option value="">{saved.length ? "From a template" : "No templates yet"}</option>
        {saved.map(({ name }) => (
          <option key={name}>{name}</option>
        ))}
      </select>
      {chosen && (
        <Button
          onClick={() => {
            setSaved(deleteTemplate(chosen));
            setChosen("");
          }}
        >
          Delete it
        </Button>
      )}
      {name === null ? (
        <Button onClick={() => setName(chosen)}>Save as a template</Button>
      ) : (
        <>
          <input
            autoFocus
            aria-label="Name of the template"
            placeholder="Name"
            value={name}
            onChange={(event) => setName(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Enter") return;
              event.preventDefault(); // it would start the session
              save();
            }}
          />
          <Button disabled={!name.trim()} onClick={save}>
            Save
          </Button>
        </>
      )}
    </div>
  );
}
