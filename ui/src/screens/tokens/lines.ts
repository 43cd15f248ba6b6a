/** Tokens and text as lines of a pane: what is drawn is drawn by line, so a line is all that one must find. */
import { firstBeyond, type Reading, type Segment } from "./reading";
import { shownLength } from "./shown";

export interface Line {
  kind: "part" | "turn" | "tokens";
  segment: Segment;
  /** Tokens [from, to) of the segment; of a heading those that follow it. */
  from: number;
  to: number;
  message: number | null;
  /** Characters [start, end) of the segment's text, of a line of text. */
  start?: number;
  end?: number;
}

/** What a token takes beside its characters, in widths of one. */
const AROUND = 0.75;

/** The tokens in lines of so many characters; a new line for each message, and behind a line break. */
export function tokenLines(reading: Reading, columns: number): Line[] {
  const lines: Line[] = [];
  eachTurn(reading, (segment, from, to, message) => {
    if (from === 0 && isParted(reading)) lines.push(partLine(segment));
    lines.push({ kind: "turn", segment, from, to, message });
    let start = from;
    let width = 0;
    for (let place = from; place < to; place += 1) {
      const own = shownLength(segment.shown(place)) + AROUND;
      if (width > 0 && width + own > columns) {
        lines.push({ kind: "tokens", segment, from: start, to: place, message });
        start = place;
        width = 0;
      }
      width += own;
      if (segment.text[(segment.upTo[place] ?? 0) - 1] === "\n") width = columns;
    }
    lines.push({ kind: "tokens", segment, from: start, to, message });
  });
  return lines;
}

/** The text in its own lines, longer ones in several; a new one for each message. */
export function textLines(reading: Reading, columns: number): Line[] {
  const lines: Line[] = [];
  eachTurn(reading, (segment, from, to, message) => {
    if (from === 0 && isParted(reading)) lines.push(partLine(segment));
    let start = segment.from(from);
    const last = segment.upTo[to - 1] ?? start;
    while (start < last) {
      const end = lineEnd(segment.text, start, last, columns);
      const [first, behind] = [segment.at(start), segment.at(end - 1) + 1];
      lines.push({ kind: "tokens", segment, from: first, to: behind, message, start, end });
      start = end;
    }
  });
  return lines;
}

/** Behind the line break, else behind the last space that there is room for, else where the room ends. */
function lineEnd(text: string, start: number, last: number, columns: number): number {
  const found = text.indexOf("\n", start);
  const end = found < 0 || found >= last ? last : found + 1;
  if (end - start <= columns) return end;
  const space = text.lastIndexOf(" ", start + columns - 1);
  const wanted = space > start ? space + 1 : start + columns;
  return isInside(text, wanted) ? wanted + 1 : wanted;
}

/** Whether a place is between the two halves of a character. */
function isInside(text: string, place: number): boolean {
  const unit = text.charCodeAt(place);
  return unit >= 0xdc00 && unit <= 0xdfff;
}

type Turn = (segment: Segment, from: number, to: number, message: number | null) => void;

function eachTurn(reading: Reading, turn: Turn): void {
  for (const segment of reading.segments) {
    let from = 0;
    for (const [number, { end, message }] of segment.runs.entries()) {
      const next = segment.runs[number + 1];
      if (next && next.message === message) continue;
      turn(segment, from, end, message);
      from = end;
    }
  }
}

function isParted(reading: Reading): boolean {
  return reading.segments.length > 1;
}

function partLine(segment: Segment): Line {
  return { kind: "part", segment, from: 0, to: segment.count, message: null };
}

/** The line that shows a token: the first that has any of it. */
export function lineOf(lines: readonly Line[], position: number): number {
  const found = firstBeyond(lines.length, (index) => {
    const line = lines[index];
    return !line || line.segment.first + (line.kind === "tokens" ? line.to : line.from) > position;
  });
  return Math.min(found, lines.length - 1);
}
