/** A model: typed, or chosen among the local ones and those that a provider lists; asks for a key that is missing. */

import { useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useLoaded } from "../components/useLoaded";
import type { ModelInfo } from "../../generated/types";
import { OfferedModels } from "./OfferedModels";
import { isProvider, prefixOf, providerOf, serverAt, serviceOf } from "./service";
import { ServiceKey } from "./ServiceKey";
import "../styles/models.css";

interface Props {
  value: string;
  /** The address of the server that has the model, "" for a provider's. */
  baseUrl: string;
  /** The model that an empty field means. */
  placeholder?: string;
  hint?: string;
  required?: boolean;
  onChange: (model: string) => void;
}

export function ModelField({ value, baseUrl, placeholder = "", hint = "", required = false, onChange }: Props) {
  const [open, setOpen] = useState(false);
  const [keys, setKeys] = useState(0);
  const { value: available, problem } = useLoaded(() => api.models(), [keys]);
  const url = baseUrl.trim();
  const service = serviceOf(value.trim() || (url ? "" : placeholder), url, available?.models ?? []);
  return (
    <>
      <div className="model-field">
        <Field label="Model" hint={hint}>
          <input
            name="model"
            value={value}
            required={required}
            pattern=".*[^:]"
            title="The provider and the model, like anthropic:NAME"
            placeholder={placeholder}
            spellCheck={false}
            onChange={(event) => onChange(event.target.value)}
          />
        </Field>
        <Button aria-expanded={open} onClick={() => setOpen(!open)}>
          Choose
        </Button>
      </div>
      {service && !open && (
        <ServiceKey
          key={`${service.provider}${service.baseUrl} ${keys}`}
          service={service}
          onTaken={() => setKeys(keys + 1)}
        />
      )}
      {open && (
        <ModelList
          models={available?.models ?? []}
          baseUrl={url}
          keys={keys}
          onTaken={() => setKeys(keys + 1)}
          onChoose={(model) => {
            onChange(model);
            setOpen(false);
          }}
        />
      )}
      <Problem text={problem} />
    </>
  );
}

interface ListProps {
  models: ModelInfo[];
  baseUrl: string;
  keys: number;
  onTaken: () => void;
  onChoose: (model: string) => void;
}

function ModelList({ models, baseUrl, keys, onTaken, onChoose }: ListProps) {
  const [provider, setProvider] = useState("");
  const chosen = models.find((model) => isProvider(model) && prefixOf(model) === provider);
  const shared = { keys, onTaken, onChoose };
  if (baseUrl) return <OfferedModels service={serverAt(baseUrl)} {...shared} />;
  if (chosen) return <OfferedModels service={providerOf(chosen)} {...shared} onBack={() => setProvider("")} />;
  return (
    <ul className="list model-list" aria-label="Available models">
      {models.map((model) => (
        <li key={model.name}>
          <button
            type="button"
            className="row-button"
            onClick={() => (isProvider(model) ? setProvider(prefixOf(model)) : onChoose(model.name))}
          >
            <code>{isProvider(model) ? prefixOf(model) : model.name}</code>{" "}
            <span className={model.ready ? "" : "faint"}>{model.about}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
