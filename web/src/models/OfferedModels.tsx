/** The models of a provider or of a server, with their prices: its own list, or the one that Handiwork ships. */

import { useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useLoaded, useSettled } from "../components/useLoaded";
import type { OfferedModel } from "../../generated/types";
import { count } from "../wording/format";
import { exact } from "../wording/text";
import type { Service } from "./service";
import { ServiceKey } from "./ServiceKey";

interface Props {
  service: Service;
  /** A number that changes when a key does. */
  keys: number;
  /** Called when the user has entered a key; without it, none can be entered here. */
  onTaken?: () => void;
  onChoose: (model: string) => void;
  onBack?: () => void;
}

export function OfferedModels({ service, keys, onTaken, onChoose, onBack }: Props) {
  const [text, setText] = useState("");
  const { provider } = service;
  const baseUrl = useSettled(service.baseUrl, 500); // while it is typed, no key goes to the half of an address
  const { value, problem, loading } = useLoaded(() => api.offeredModels(provider, baseUrl), [provider, baseUrl, keys]);
  const wanted = text.trim().toLowerCase();
  const models = value?.models.filter(({ name, title }) => `${name} ${title}`.toLowerCase().includes(wanted)) ?? [];
  return (
    <section className="model-offered" aria-label={`Models of ${provider || baseUrl}`}>
      {onTaken && <ServiceKey key={keys} service={service} refused={value?.refused} onTaken={onTaken} />}
      <div className="row">
        {onBack && <Button onClick={onBack}>← Providers</Button>}
        <input
          className="grow"
          type="search"
          aria-label="Search models"
          placeholder={loading ? "Loading …" : `Search ${models.length} models`}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {value?.source === "shipped" && (
        <p className="faint">
          {value.models.length > 0
            ? `The list that Handiwork ships, which may be old: ${value.problem}.`
            : `No list of models: ${value.problem}. Write the model's name.`}
        </p>
      )}
      <Problem text={problem} />
      <ul className="list model-list">
        {models.map((model) => (
          <li key={model.name}>
            <button type="button" className="row-button" onClick={() => onChoose(model.name)}>
              <code>{exact(model.name)}</code> <span className="faint">{factsOf(model)}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function factsOf({ title, window, input, output }: OfferedModel): string {
  const price = input !== null && output !== null && `$${input} in, $${output} out per million tokens`;
  const context = window !== null && `${count(window / 1000)}k context`;
  return [exact(title), price, context].filter(Boolean).join(" · ");
}
