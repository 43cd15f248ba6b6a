/** The token that the panes show together: chosen with a click or a key, or under the pointer. */
import { createContext, useContext, useEffect, useSyncExternalStore } from "react";
import type { Line } from "./lines";

export type PaneName = "chat" | "text" | "tokens" | "keys";

export interface Pointed {
  position: number | null;
  message: number | null;
}

const NOTHING: Pointed = { position: null, message: null };

/** Outside of React's state: what moves with the pointer draws two lines anew, not the screen. */
export class Cursor {
  private chosen: Pointed = NOTHING;
  private hovered: Pointed = NOTHING;
  /** Who moved it last: a pane does not scroll for itself. */
  from: PaneName = "keys";
  /** As they are drawn, for the keys that go up and down. */
  tokenLines: readonly Line[] | undefined;
  private readonly listeners = new Set<() => void>();

  /** What all panes show: what is under the pointer, else what was chosen. */
  get active(): Pointed {
    return this.hovered.message !== null || this.hovered.position !== null ? this.hovered : this.chosen;
  }

  get position(): number | null {
    return this.chosen.position;
  }

  choose(pointed: Pointed, from: PaneName): void {
    this.chosen = pointed;
    this.hovered = NOTHING;
    this.become(from);
  }

  hover(pointed: Pointed | null, from: PaneName): void {
    const next = pointed ?? NOTHING;
    if (next.position === this.hovered.position && next.message === this.hovered.message) return;
    this.hovered = next;
    this.become(from);
  }

  private become(from: PaneName): void {
    this.from = from;
    for (const tell of this.listeners) tell();
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };
}

export const CursorContext = createContext(new Cursor());

export function useCursor(): Cursor {
  return useContext(CursorContext);
}

/** The active position, where a line has it; else -1, or -2 where all of the line's message is pointed at. */
export function useActiveIn(line: Line): number {
  const cursor = useCursor();
  return useSyncExternalStore(cursor.subscribe, () => {
    const { position, message } = cursor.active;
    if (position === null) return message !== null && message === line.message ? -2 : -1;
    const place = position - line.segment.first;
    return place >= line.from && place < line.to ? position : -1;
  });
}

export function useActive(): Pointed {
  const cursor = useCursor();
  return useSyncExternalStore(cursor.subscribe, () => cursor.active);
}

/** Runs when the cursor was moved by another pane. */
export function useFollow(pane: PaneName, follow: (pointed: Pointed) => void): void {
  const cursor = useCursor();
  useEffect(
    () => cursor.subscribe(() => cursor.from !== pane && follow(cursor.active)),
    [cursor, pane, follow],
  );
}
