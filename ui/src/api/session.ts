/** The access token of this tab, and whether the server has asked for one. */
import { useSyncExternalStore } from "react";

const KEY = "turnmill-token";

export interface Session {
  /** What requests bring; null: none. */
  token: string | null;
  /** Why the server wants another token, in its own words; null: it does not. */
  asked: string | null;
}

let session: Session = { token: sessionStorage.getItem(KEY), asked: null };
const listeners = new Set<() => void>();

function become(next: Session): void {
  session = next;
  for (const tell of listeners) tell();
}

export function currentSession(): Session {
  return session;
}

/** The server refused the token that a request brought: one that was replaced meanwhile is not asked for again. */
export function askForToken(why: string, refused: string | null): void {
  if (session.asked === null && refused === session.token) become({ ...session, asked: why });
}

export function signIn(token: string): void {
  sessionStorage.setItem(KEY, token);
  become({ token, asked: null });
}

export function signOut(): void {
  sessionStorage.removeItem(KEY);
  become({ token: null, asked: null });
}

/** Leaves what is on the screen as it is; the next refusal asks again. */
export function dismissAsking(): void {
  become({ ...session, asked: null });
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, currentSession);
}
