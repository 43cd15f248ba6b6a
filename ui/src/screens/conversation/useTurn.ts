/** The turn that the address is about (`#turn-3`), and the keys that go to the next one. */
import { useCallback, useEffect, useMemo, useState } from "react";
import { useShortcuts } from "@/kit/shortcuts";
import { anchorOf, type Turn, turnAt } from "./turns";

/**
 * The place of the turn of the address, and what goes to another.
 *
 * @param fallback of the turn where the address says none; below 0: none either.
 */
export function useTurn(
  turns: readonly Turn[],
  fallback: number,
): [number | undefined, (place: number) => void] {
  const [place, setPlace] = useState(() => {
    const asked = turnAt(turns, window.location.hash);
    return asked >= 0 ? asked : fallback >= 0 ? fallback : undefined;
  });
  const go = useCallback(
    (wanted: number) => {
      const next = Math.max(0, Math.min(turns.length - 1, wanted));
      const turn = turns[next];
      if (!turn) return;
      setPlace(next);
      const { pathname, search } = window.location;
      window.history.replaceState(window.history.state, "", `${pathname}${search}#${anchorOf(turn)}`);
    },
    [turns],
  );
  useEffect(() => {
    const onHash = () => {
      const asked = turnAt(turns, window.location.hash);
      if (asked >= 0) setPlace(asked);
    };
    window.addEventListener("hashchange", onHash);
    return () => window.removeEventListener("hashchange", onHash);
  }, [turns]);
  useShortcuts(
    useMemo(
      () => [
        { key: "]", what: "Next turn", run: () => go(place === undefined ? 0 : place + 1) },
        { key: "[", what: "Previous turn", run: () => go((place ?? 1) - 1) },
      ],
      [place, go],
    ),
  );
  return [place, go];
}
