/** Files of the server, kept where the browser keeps files: a plain link could not bring the token. */
import { fetchWithToken } from "./client";
import { problemOf } from "./problem";

const RELEASED_MS = 60_000;

/**
 * Fetch a file, and have the browser save it.
 *
 * @throws ApiProblem where the server refuses, or does not answer.
 */
export async function saveFile(path: string, name: string): Promise<void> {
  const response = await fetchWithToken(new Request(new URL(path, window.location.origin)));
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => null));
  const address = URL.createObjectURL(await response.blob());
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), RELEASED_MS);
}
