/** The key of a provider or of a server: asked for if it is missing or refused, else one can be entered on request. */

import { api } from "../api";
import { exact } from "../wording/text";
import { KeyForm } from "./KeyForm";
import type { Service } from "./service";

interface Props {
  service: Service;
  refused?: boolean;
  onTaken: () => void;
}

export function ServiceKey({ service, refused = false, onTaken }: Props) {
  const { provider, baseUrl, about, missing } = service;
  const take = async (key: string, keep: boolean, untested: boolean) => {
    await api.setKey({ ...(provider ? { provider } : { base_url: baseUrl }), key, keep, untested });
    onTaken();
  };
  const form = <KeyForm label={`Key for ${exact(provider || baseUrl)}`} about={missing ? about : ""} take={take} />;
  if (missing || refused) return form;
  return (
    <details className="model-replace">
      <summary>{provider ? `Replace the ${about}` : "Key of the server"}</summary>
      {form}
    </details>
  );
}
