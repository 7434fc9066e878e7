/** What a new user enters for a model at a provider or at an address. */

import { useState } from "react";
import { Button } from "../components/Button";
import { Field } from "../components/Field";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { KeepKey } from "../models/KeyForm";
import { OfferedModels } from "../models/OfferedModels";
import { isProvider, prefixOf, providerOf, serverAt, type Service } from "../models/service";
import { sentences } from "../wording/text";
import type { ModelInfo } from "../../generated/types";
import { type Choice, takeKey } from "./firstChoice";

interface FieldsProps {
  choice: Choice;
  set: (part: Partial<Choice>) => void;
}

export function ProviderFields({ choice, set, models }: FieldsProps & { models: ModelInfo[] }) {
  const providers = models.filter(isProvider);
  const chosen = providers.find((info) => prefixOf(info) === choice.provider);
  return (
    <>
      <Field label="Provider">
        <select value={choice.provider} onChange={(event) => set({ provider: event.target.value })}>
          {providers.map((info) => (
            <option key={info.name}>{prefixOf(info)}</option>
          ))}
        </select>
      </Field>
      <KeyField
        choice={choice}
        set={set}
        needed={!chosen?.ready}
        hint={chosen?.ready ? `There is a ${chosen.about}. A key entered here replaces it.` : (chosen?.about ?? "")}
      />
      {chosen && (
        <NameField
          key={`${choice.provider} ${choice.key}`}
          choice={choice}
          set={set}
          service={providerOf(chosen)}
          hint="The name the provider uses."
        />
      )}
    </>
  );
}

export function AddressFields({ choice, set }: FieldsProps) {
  const url = choice.url.trim();
  return (
    <>
      <Field label="Base URL">
        <input
          required
          type="url"
          placeholder="http://localhost:8000/v1"
          value={choice.url}
          onChange={(event) => set({ url: event.target.value })}
        />
      </Field>
      <KeyField choice={choice} set={set} needed={false} hint="If the server needs one." />
      <NameField
        key={`${url} ${choice.key}`}
        choice={choice}
        set={set}
        service={serverAt(url)}
        hint="The name the server uses."
      />
    </>
  );
}

/** The model's name, and the list of its service's models, for which the typed key is used. */
function NameField({ choice, set, service, hint }: FieldsProps & { service: Service; hint: string }) {
  const [listed, setListed] = useState(false);
  const { busy, problem, run } = useAsync();
  const list = () =>
    run(async () => {
      await takeKey(choice);
      setListed(true);
    });
  return (
    <>
      <Field label="Model" hint={hint}>
        <input
          required
          spellCheck={false}
          value={choice.name}
          onChange={(event) => set({ name: event.target.value })}
        />
      </Field>
      {listed ? (
        <OfferedModels
          service={service}
          keys={0}
          onChoose={(model) => {
            set({ name: service.provider ? model.slice(service.provider.length + 1) : model });
            setListed(false);
          }}
        />
      ) : (
        <div>
          <Button disabled={busy || !(service.provider || service.baseUrl)} onClick={list}>
            {service.provider ? "List the models and their prices" : "List the server's models"}
          </Button>
        </div>
      )}
      <Problem text={problem} />
    </>
  );
}

function KeyField({ choice, set, needed, hint }: FieldsProps & { needed: boolean; hint: string }) {
  return (
    <>
      <Field label="Key" hint={sentences(hint)}>
        <input
          type="password"
          autoComplete="off"
          required={needed}
          value={choice.key}
          onChange={(event) => set({ key: event.target.value })}
        />
      </Field>
      {choice.key && <KeepKey keep={choice.keep} onChange={(keep) => set({ keep })} />}
    </>
  );
}
