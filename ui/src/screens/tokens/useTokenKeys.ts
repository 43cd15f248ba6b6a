/** The keys of the token viewer: arrows move the cursor, brackets step through messages, `t` finds what trains. */
import { useMemo } from "react";
import { useShortcuts } from "@/kit/shortcuts";
import { trainedStarts, turnStarts } from "./counts";
import type { Cursor } from "./cursor";
import { type Line, lineOf, tokenLines } from "./lines";
import type { Reading } from "./reading";

/** Characters of a line for the up and down keys where no pane has been measured. */
const COLUMNS = 60;

export function useTokenKeys(reading: Reading | undefined, cursor: Cursor): void {
  useShortcuts(
    useMemo(() => (reading && reading.count > 0 ? keysOf(reading, cursor) : []), [reading, cursor]),
  );
}

function keysOf(reading: Reading, cursor: Cursor) {
  const goTo = (position: number | undefined) => {
    if (position === undefined) return;
    const place = Math.max(0, Math.min(reading.count - 1, position));
    cursor.choose({ position: place, message: reading.fact(place).message }, "keys");
  };
  const by = (step: number) => () => goTo(cursor.position === null ? 0 : cursor.position + step);
  const turns = turnStarts(reading);
  const trained = trainedStarts(reading);
  const at = () => cursor.position ?? -1;
  const lines = () => cursor.tokenLines ?? tokenLines(reading, COLUMNS);
  return [
    { key: "ArrowRight", what: "Next token", run: by(1) },
    { key: "ArrowLeft", what: "Token before", run: by(-1) },
    { key: "ArrowDown", what: "Token in the next line", run: () => goTo(lineStep(lines(), at(), 1)) },
    { key: "ArrowUp", what: "Token in the line before", run: () => goTo(lineStep(lines(), at(), -1)) },
    { key: "]", what: "Next message", run: () => goTo(turns.find((start) => start > at())) },
    { key: "[", what: "Message before", run: () => goTo(turns.findLast((start) => start < at())) },
    { key: "t", what: "Next tokens that train", run: () => goTo(trained.find((start) => start > at())) },
    {
      key: "T",
      what: "Tokens before that train",
      run: () => goTo(trained.findLast((start) => start < at())),
    },
  ];
}

/** The token as far into the next line of tokens as this one is into its own. */
export function lineStep(lines: readonly Line[], position: number, step: 1 | -1): number {
  if (position < 0) return 0;
  const from = lineOf(lines, position);
  let to = from + step;
  while (lines[to] && lines[to]?.kind !== "tokens") to += step;
  const [here, there] = [lines[from], lines[to]];
  if (!here || !there) return position;
  const into = position - here.segment.first - here.from;
  return there.segment.first + Math.min(there.from + into, there.to - 1);
}
