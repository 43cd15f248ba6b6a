/** Keys that do something wherever the focus is, but in a field; the `?` sheet lists those that are in force. */
import { useEffect, useSyncExternalStore } from "react";

export interface Shortcut {
  /** As `KeyboardEvent.key` says it. */
  key: string;
  /** What it does, for the sheet. */
  what: string;
  run: () => void;
}

let inForce: readonly Shortcut[] = [];
const listeners = new Set<() => void>();

function become(next: readonly Shortcut[]): void {
  inForce = next;
  for (const tell of listeners) tell();
}

/** Holds while the component is on the screen; give the same array as long as nothing changes (`useMemo`). */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  useEffect(() => {
    become([...inForce, ...shortcuts]);
    return () => become(inForce.filter((one) => !shortcuts.includes(one)));
  }, [shortcuts]);
}

export function useShortcutsInForce(): readonly Shortcut[] {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => inForce,
  );
}

/** Runs the shortcut of a key, the one that came last where two have it. */
export function handleKey(event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target))
    return;
  const found = inForce.findLast((one) => one.key === event.key);
  if (!found) return;
  event.preventDefault();
  found.run();
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target.closest("input, select, textarea, [role='dialog']") !== null)
  );
}
