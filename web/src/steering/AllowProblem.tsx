/** Allowing hosts: commands that run already could use them unasked, so the user may have to confirm. */

import { useState } from "react";
import { ApiError } from "../api";
import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import type { Hosts, SessionView } from "../../generated/types";
import type { SessionStore } from "../store";
import { exact } from "../wording/text";

type Scope = NonNullable<Hosts["scope"]>;
interface Unconfirmed {
  request: Hosts;
  why: string;
}

/** Allow hosts, and call `then` with the session when they are allowed. */
export function useAllowHosts(store: SessionStore, then: (info: SessionView) => Promise<unknown>) {
  const { busy, problem, run } = useAsync();
  const [unconfirmed, setUnconfirmed] = useState<Unconfirmed | null>(null);
  const send = (request: Hosts) =>
    run(async () => {
      setUnconfirmed(null);
      try {
        await then(await store.api.allowHosts(request));
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 409 || request.confirmed) throw error;
        setUnconfirmed({ request, why: error.message });
      }
    });
  const allow = (host: string, scope: Scope) => send({ hosts: [host], scope });
  const confirm = () => unconfirmed && send({ ...unconfirmed.request, confirmed: true });
  return { busy, problem, why: unconfirmed?.why ?? "", allow, confirm };
}

export function AllowProblem({ busy, problem, why, confirm }: ReturnType<typeof useAllowHosts>) {
  return (
    <>
      {why && (
        <p className="steering-confirm">
          {exact(why)}{" "}
          <Button kind="danger" disabled={busy} onClick={confirm}>
            Allow it anyway
          </Button>
        </p>
      )}
      <Problem text={problem} />
    </>
  );
}
