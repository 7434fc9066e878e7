import { Component, lazy, Suspense, type ComponentType, type LazyExoticComponent, type ReactNode } from "react";
import type { PaneComponent, PaneInfo } from "../panes";
import type { SessionStore } from "../store";
import { said } from "../api";
import { Button } from "./Button";

const loaded = new Map<string, LazyExoticComponent<ComponentType<{ session: SessionStore }>>>();

function lazily({ name, load }: PaneInfo): LazyExoticComponent<PaneComponent> {
  const known = loaded.get(name) ?? lazy(load);
  loaded.set(name, known);
  return known;
}

/** A part of the page that is fetched when it is first shown; where it fails the rest of the page goes on. */
export function Later({ part, session }: { part: PaneInfo; session: SessionStore }) {
  const Part = lazily(part);
  return (
    <Boundary key={part.name} title={part.title} again={() => loaded.delete(part.name)}>
      <Suspense fallback={<p className="middle faint">Loading …</p>}>
        <Part session={session} />
      </Suspense>
    </Boundary>
  );
}

interface BoundaryProps {
  title: string;
  again: () => void;
  children: ReactNode;
}

export class Boundary extends Component<BoundaryProps, { error: unknown }> {
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
    this.props.again();
    this.setState({ error: null });
  };
}
