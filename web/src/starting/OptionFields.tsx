/** The options of a new session. Each shows what the settings say for a field that is left empty. */

import { Field } from "../components/Field";
import { CONFIRMATIONS } from "../steering/confirmations";
import type { AgentList, SettingsView } from "../../generated/types";
import type { FieldOf } from "./form";

interface Props {
  field: FieldOf;
  settings: SettingsView | null;
  agents: AgentList | null;
}

export function OptionFields({ field, settings, agents }: Props) {
  const says = (value: string | undefined) =>
    value === undefined ? "As the settings say" : `As the settings say: ${value}`;
  const confirmation = CONFIRMATIONS.find(([mode]) => mode === settings?.confirmation)?.[1];
  const listed = (values: readonly string[] | undefined) => values?.join(", ") || "none";
  const limit = (value: number | null | undefined) => (value == null ? "no limit" : String(value));
  return (
    <>
      <div className="starting-columns">
        <Field label="Mode">
          <select {...field("mode")}>
            <option value="">
              {says(settings ? (settings.plan_mode ? "plan first" : "work at once") : undefined)}
            </option>
            <option value="work">Work at once</option>
            <option value="plan">Plan first: change nothing before you accept the plan</option>
          </select>
        </Field>
        <Field label="Ask for approval">
          <select {...field("confirmation")}>
            <option value="">{says(confirmation?.toLowerCase())}</option>
            {CONFIRMATIONS.map(([value, about]) => (
              <option key={value} value={value}>
                {about}
              </option>
            ))}
          </select>
        </Field>
        <Field label="Agent">
          <select {...field("agent")}>
            <option value="">{says(settings?.agent)}</option>
            {agents?.agents.map(({ name, about }) => (
              <option key={name} value={name} title={about}>
                {name}
              </option>
            ))}
          </select>
        </Field>
        <Field
          label="Docker image"
          hint={`Without one, commands run in ${settings?.image ?? settings?.sandbox ?? "the sandbox"}.`}
        >
          <input {...field("image")} placeholder={settings?.image ?? "debian:12"} spellCheck={false} />
        </Field>
        <Field label="Hosts the sandbox may reach" hint="Names, wildcards, or pypi, npm, debian; separated by commas.">
          <input {...field("allow_net")} placeholder={listed(settings?.allow_net)} spellCheck={false} />
        </Field>
        <Field label="Secrets" hint="Variables of the server's environment, by name; commands that name one get it.">
          <input {...field("secrets")} placeholder={listed(settings?.secrets)} spellCheck={false} />
        </Field>
      </div>
      <Field label="Base URL" hint="The address of an OpenAI-compatible server.">
        <input {...field("base_url")} type="url" placeholder={settings?.base_url ?? "the provider's"} />
      </Field>
      <fieldset className="starting-limits">
        <legend>Limits, at which the agent pauses</legend>
        <Field label="Steps">
          <input {...field("iterations")} type="number" min={1} placeholder={limit(settings?.limits.iterations)} />
        </Field>
        <Field label="Cost in USD">
          <input {...field("cost")} type="number" min={0.01} step="any" placeholder={limit(settings?.limits.cost)} />
        </Field>
        <Field label="Tokens">
          <input {...field("tokens")} type="number" min={1} placeholder={limit(settings?.limits.tokens)} />
        </Field>
        <Field label="Seconds">
          <input {...field("time")} type="number" min={1} step="any" placeholder={limit(settings?.limits.time)} />
        </Field>
      </fieldset>
    </>
  );
}
