import { Component, type ReactNode } from "react";
import { UNREACHABLE } from "@/api/problem";
import { Page } from "@/kit/Page";
import { ProblemBox } from "@/kit/ProblemBox";

interface FailureState {
  error: unknown;
}

/** Shows what went wrong in place of a screen that cannot be drawn: never a blank page. */
export class Failure extends Component<{ children: ReactNode }, FailureState> {
  override state: FailureState = { error: null };

  static getDerivedStateFromError(error: unknown): FailureState {
    return { error };
  }

  /** Loads the page anew, but never while nobody answers: the tab would lose it. */
  retry = () => {
    fetch(document.baseURI).then(
      () => window.location.reload(),
      () => this.setState({ error: UNREACHABLE }),
    );
  };

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <Page title="This screen could not be shown">
        <ProblemBox error={this.state.error} onRetry={this.retry} />
        <p>If the server was updated meanwhile, loading the page anew is enough.</p>
      </Page>
    );
  }
}
