/** Says that the session is in plan mode, and accepts the agent's plan. */

import { Button } from "../components/Button";
import { Problem } from "../components/Problem";
import { useAsync } from "../components/useAsync";
import { type SessionStore, useSessionPart } from "../store";

export function PlanBar({ store }: { store: SessionStore }) {
  const planning = useSessionPart(store, (now) => now.info.plan_mode);
  const state = useSessionPart(store, (now) => now.info.state);
  const { busy, problem, run } = useAsync();
  if (!planning) return null;
  const waits = state === "awaiting_user_input";
  return (
    <section className="steering-bar" aria-label="Plan mode">
      <p className="grow">
        <strong>Plan mode.</strong>{" "}
        {waits
          ? "Accept the plan, or write what to change in it."
          : "The agent only reads, and changes nothing before you accept its plan."}
      </p>
      {waits ? (
        <Button kind="primary" disabled={busy} onClick={() => run(() => store.api.acceptPlan())}>
          Accept the plan
        </Button>
      ) : (
        <Button disabled={busy} onClick={() => run(() => store.api.changeSettings({ plan_mode: false }))}>
          Leave plan mode
        </Button>
      )}
      <Problem text={problem} />
    </section>
  );
}
