/** Where this page and its server's interface lie: the server writes both into the document. */

const DEFAULT_PREFIX = "/v1";

/** What the path of the page itself begins with, without a slash at its end, such as `/page`. */
export const pageRoot = new URL(document.baseURI).pathname.replace(/\/[^/]*$/, "");

const said = document.querySelector<HTMLMetaElement>('meta[name="turnmill-api"]')?.content;

/** What every path of the interface begins with, such as `/v1`. */
export const apiPrefix = said ?? DEFAULT_PREFIX;

/** The path of a route as the OpenAPI description names it, on this server. */
export function placed(path: string): string {
  return path.startsWith(`${DEFAULT_PREFIX}/`) ? apiPrefix + path.slice(DEFAULT_PREFIX.length) : path;
}
