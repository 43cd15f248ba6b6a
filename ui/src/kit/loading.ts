/** Code that is fetched when it is needed, from a server that may be restarting. */
import type { ComponentType } from "react";

export interface Loaded {
  default: ComponentType;
}

const WAITS_MS = [500, 1_000, 2_000, 4_000];

/**
 * What `load` gives, tried again for some seconds.
 *
 * @throws whatever the last try did.
 */
export async function persistently<T>(
  load: () => Promise<T>,
  waits: readonly number[] = WAITS_MS,
): Promise<T> {
  for (const wait of waits) {
    try {
      return await load();
    } catch {
      await new Promise((passed) => setTimeout(passed, wait));
    }
  }
  return load();
}
