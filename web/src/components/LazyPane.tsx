import { Component, lazy, Suspense, type LazyExoticComponent, type ReactNode } from "react";
import { said } from "../api";
import type { PaneComponent, PaneInfo } from "../panes";
import type { SessionStore } from "../store";
import { Button } from "./Button";

const known = new Map<string, LazyExoticComponent<PaneComponent>>();

/** The part's file did not come; the browser will not ask for it again in this document. */
class NotFetched extends Error {}

function lazily({ name, load }: PaneInfo): LazyExoticComponent<PaneComponent> {
  const fetched = () =>
    load().catch((error: unknown) => {
      throw new NotFetched(said(error));
    });
  const part = known.get(name) ?? lazy(fetched);
  known.set(name, part);
  return part;
}

/** A part of the page that is fetched when it is first shown; where it fails the rest of the page goes on. */
export function LazyPane({ part, session }: { part: PaneInfo; session: SessionStore }) {
  const Part = lazily(part);
  return (
    <Boundary key={part.name} title={part.title}>
      <Suspense fallback={<p className="middle faint">Loading …</p>}>
        <Part session={session} />
      </Suspense>
    </Boundary>
  );
}

class Boundary extends Component<{ title: string; children: ReactNode }, { error: unknown }> {
  override state: { error: unknown } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: unknown } {
    return { error };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="middle" role="alert">
        <p>{this.props.title} could not be shown.</p>
        <p className="error-text">{said(this.state.error)}</p>
        <div>
          <Button onClick={this.again}>Load it again</Button>
        </div>
      </div>
    );
  }

  private readonly again = (): void => {
    if (this.state.error instanceof NotFetched) location.reload();
    else this.setState({ error: null });
  };
}
