/**
 * A pane of one's own: copy it to web/src/panes/Hosts.tsx, then run `make setup`. Its tab bears the file's name.
 *
 * A pane gets the session, whose state and newest events it reads with `useSessionPart`.
 */

import { type SessionStore, useSessionPart } from "../store";
import { Empty } from "./common/Empty";

/** The hosts that the sandbox asked for, with the answers of the proxy. */
export default function HostsPane({ session }: { session: SessionStore }) {
  const events = useSessionPart(session, (now) => now.events);
  const requests = events.flatMap((event) => (event.type === "EgressEvent" ? [event] : []));
  if (requests.length === 0) return <Empty>No program has asked for a host yet.</Empty>;
  return (
    <ul className="pane-scroll">
      {requests.map(({ id, host, port, allowed }) => (
        <li key={id}>
          {host}:{port} {allowed ? "allowed" : "refused"}
        </li>
      ))}
    </ul>
  );
}
