/** How many tokens of each message train, and where turns and trained runs begin. */
import type { Reading } from "./reading";

export interface TurnCount {
  /** null: of no recorded message. */
  message: number | null;
  role: string;
  why: string;
  /** The first of its tokens. */
  position: number;
  tokens: number;
  trained: number;
  cut: number;
}

/** Of every message that has tokens, in the order in which they come. */
export function countsOf(reading: Reading): TurnCount[] {
  const found = new Map<number | null, TurnCount>();
  const turns = new Map(reading.explained.turns.map((turn) => [turn.message, turn]));
  for (const segment of reading.segments) {
    let start = 0;
    for (const { end, message } of segment.runs) {
      const turn = message === null ? undefined : turns.get(message);
      const said = {
        role: turn?.role ?? "template",
        why: turn?.why ?? "template",
        tokens: 0,
        trained: 0,
        cut: 0,
      };
      const count = found.get(message) ?? { message, position: segment.first + start, ...said };
      found.set(message, count);
      if (segment.part === null) count.cut += end - start;
      else count.tokens += end - start;
      for (let place = start; place < end; place += 1) count.trained += Number(segment.isTrained(place));
      start = end;
    }
  }
  return [...found.values()];
}

export interface Totals {
  tokens: number;
  trained: number;
  cut: number;
}

export function totalsOf(counts: readonly TurnCount[]): Totals {
  const totals = { tokens: 0, trained: 0, cut: 0 };
  for (const { tokens, trained, cut } of counts) {
    totals.tokens += tokens;
    totals.trained += trained;
    totals.cut += cut;
  }
  return totals;
}

/** The positions at which the tokens of another message, or of another part, begin. */
export function turnStarts(reading: Reading): number[] {
  const starts: number[] = [];
  for (const segment of reading.segments) {
    let start = 0;
    let before: number | null | undefined;
    for (const { end, message } of segment.runs) {
      if (message !== before) starts.push(segment.first + start);
      before = message;
      start = end;
    }
  }
  return starts;
}

/** The positions at which tokens begin to train. */
export function trainedStarts(reading: Reading): number[] {
  const starts: number[] = [];
  for (const segment of reading.segments) {
    let was = false;
    for (let place = 0; place < segment.count; place += 1) {
      const is = segment.isTrained(place);
      if (is && !was) starts.push(segment.first + place);
      was = is;
    }
  }
  return starts;
}
