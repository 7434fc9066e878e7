/** A model: typed, or chosen among the local ones and those that a provider lists; asks for a key that is missing. */

import { useState } from "react";
import { api } from "../api";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useLoaded } from "../components/useLoaded";
import type { ModelInfo } from "../../generated/types";
import { KeyForm } from "./KeyForm";
import { OfferedModels } from "./OfferedModels";
import "../styles/models.css";

interface Props {
  value: string;
  baseUrl: string;
  placeholder?: string;
  hint?: string;
  required?: boolean;
  onChange: (model: string) => void;
}

export function ModelField({ value, baseUrl, placeholder = "", hint = "", required = false, onChange }: Props) {
  const [open, setOpen] = useState(false);
  const [keys, setKeys] = useState(0);
  const { value: available, problem } = useLoaded(() => api.models(), [keys]);
  const provider = providerOf(value, available?.models ?? []);
  const missing = provider && !provider.ready && !baseUrl.trim();
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
      {missing && <ProviderKey provider={nameOf(provider)} about={provider.about} onTaken={() => setKeys(keys + 1)} />}
      {open && (
        <ModelList
          models={available?.models ?? []}
          baseUrl={baseUrl.trim()}
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
  const [provider, setProvider] = useState<string | null>(null);
  const chosen = models.find((model) => nameOf(model) === provider);
  if (baseUrl) return <OfferedModels baseUrl={baseUrl} keys={keys} onChoose={onChoose} />;
  if (provider !== null && chosen) {
    return (
      <>
        {!chosen.ready && <ProviderKey provider={provider} about={chosen.about} onTaken={onTaken} />}
        <OfferedModels provider={provider} keys={keys} onChoose={onChoose} onBack={() => setProvider(null)} />
      </>
    );
  }
  return (
    <ul className="list model-list" aria-label="Available models">
      {models.map((model) => (
        <li key={model.name}>
          <button
            type="button"
            className="row-button"
            onClick={() => (isProvider(model) ? setProvider(nameOf(model)) : onChoose(model.name))}
          >
            <code>{isProvider(model) ? nameOf(model) : model.name}</code>{" "}
            <span className={model.ready ? "" : "faint"}>{model.about}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function isProvider({ name }: ModelInfo): boolean {
  return name.endsWith(":NAME");
}

function nameOf({ name }: ModelInfo): string {
  return name.split(":")[0] ?? "";
}

function providerOf(model: string, models: readonly ModelInfo[]): ModelInfo | undefined {
  return models.find((info) => isProvider(info) && model.startsWith(`${nameOf(info)}:`));
}

function ProviderKey({ provider, about, onTaken }: { provider: string; about: string; onTaken: () => void }) {
  const take = async (key: string, keep: boolean) => {
    await api.setKey(provider, key, keep);
    onTaken();
  };
  return <KeyForm label={`Key for ${provider}`} about={about} take={take} />;
}
