import { Component, lazy, Suspense, type LazyExoticComponent, type ReactNode } from "react";
import { errorMessage } from "../api";
import type { PaneComponent, PaneInfo } from "../panes";
import type { SessionStore } from "../store";
import { Button } from "./Button";

const panes = new Map<string, PaneComponent | LazyExoticComponent<PaneComponent>>();

/** The pane's code failed to load; the browser retries only after a reload. */
class LoadError extends Error {}

function lazyPane({ name, load }: PaneInfo): PaneComponent | LazyExoticComponent<PaneComponent> {
  const loadPane = () =>
    load().catch((error: unknown) => {
      throw new LoadError(errorMessage(error));
    });
  const pane = panes.get(name) ?? lazy(loadPane);
  panes.set(name, pane);
  return pane;
}

/**
 * Load a pane's code, so that the pane is shown without the text "Loading …" before it, which React would leave on the
 * screen for 300 ms. If it fails, the pane tries again when it is shown.
 */
export async function preload({ name, load }: PaneInfo): Promise<void> {
  const module = await load().catch(() => null);
  if (module !== null) panes.set(name, module.default);
}

/** A pane that is loaded when first shown; its errors do not affect the rest of the page. */
export function LazyPane({ pane, session }: { pane: PaneInfo; session: SessionStore }) {
  const Pane = lazyPane(pane);
  return (
    <Boundary key={pane.name} title={pane.title}>
      <Suspense fallback={<p className="middle faint">Loading …</p>}>
        <Pane session={session} />
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
        <p>{this.props.title} failed to load.</p>
        <p className="error-text">{errorMessage(this.state.error)}</p>
        <div>
          <Button onClick={this.retry}>Load again</Button>
        </div>
      </div>
    );
  }

  private readonly retry = (): void => {
    if (this.state.error instanceof LoadError) location.reload();
    else this.setState({ error: null });
  };
}
