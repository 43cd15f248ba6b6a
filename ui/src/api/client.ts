/** The typed client of the server's interface: every request brings the token, every refusal is an `ApiProblem`. */
import createClient from "openapi-fetch";
import { placed } from "./places";
import { ApiProblem, problemOf, UNREACHABLE } from "./problem";
import type { components, paths } from "./schema";
import { askForToken, currentSession } from "./session";

export type Schemas = components["schemas"];

/** `fetch` with the token of this tab; where the server refuses it, somebody is asked for another one. */
export async function fetchWithToken(request: Request): Promise<Response> {
  const { token } = currentSession();
  const sent = await placedRequest(request);
  if (token) sent.headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(sent).catch((error: unknown) => {
    if (sent.signal.aborted) throw error;
    throw UNREACHABLE;
  });
  if (response.status === 401) {
    const problem = problemOf(
      401,
      await response
        .clone()
        .json()
        .catch(() => null),
    );
    askForToken(problem.detail, token);
  }
  return response;
}

/** The request where this server has its interface; a body is sent whole, for a stream would need HTTP/2. */
async function placedRequest(request: Request): Promise<Request> {
  const url = new URL(request.url);
  const pathname = placed(url.pathname);
  if (pathname === url.pathname) return request;
  url.pathname = pathname;
  const { method, headers, signal } = request;
  const body = request.body === null ? null : await request.blob();
  return new Request(url, { method, headers, signal, body });
}

export const client = createClient<paths>({
  baseUrl: window.location.origin,
  fetch: fetchWithToken,
});

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/**
 * The data of an answer: `await answered(client.GET("/v1/training/datasets"))`.
 *
 * @throws ApiProblem where the server refuses, or does not answer.
 */
export async function answered<T>(asked: Promise<Answer<T>>): Promise<T> {
  const { data, error, response } = await asked;
  if (!response.ok) throw problemOf(response.status, error);
  return data as T;
}

/** Whether a request that failed is worth another try by itself: never one that the server has refused. */
export function isRetried(failures: number, error: unknown): boolean {
  return failures < 2 && error instanceof ApiProblem && error.isPassing;
}
