/** What went wrong, as the server says it (RFC 9457), or as the browser does where no answer came. */
import type { components } from "./schema";

export type Fault = components["schemas"]["Fault"];

export class ApiProblem extends Error {
  override readonly name = "ApiProblem";

  constructor(
    /** Of the answer; 0: there was none. */
    readonly status: number,
    /** Stable; one of the codes of the REST reference, or `server-unreachable`. */
    readonly code: string,
    readonly detail: string,
    readonly faults: readonly Fault[] = [],
  ) {
    super(detail);
  }

  /** Whether the same request can go well later, without anybody doing anything. */
  get isPassing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

export const UNREACHABLE = new ApiProblem(
  0,
  "server-unreachable",
  "The server does not answer: it may be restarting, or the network is gone.",
);

/** The problem in the body of an answer that is no success. */
export function problemOf(status: number, body: unknown): ApiProblem {
  if (typeof body === "object" && body !== null && "code" in body) {
    const said = body as { code: unknown; detail?: unknown; faults?: Fault[] | null };
    return new ApiProblem(status, String(said.code), String(said.detail ?? said.code), said.faults ?? []);
  }
  return new ApiProblem(status, `http-${status}`, `The server answered ${status} and did not say why.`);
}

/** Any thrown value as a problem that can be shown. */
export function asProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error;
  return new ApiProblem(0, "page-failed", error instanceof Error ? error.message : String(error));
}
