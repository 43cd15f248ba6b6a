/** How a record became a conversation: which of its messages a turn was, and what is not said as it was recorded. */
import type { Turn } from "./turns";

const LISTS = [
  "messages",
  "conversations",
  "conversation",
  "turns",
  "dialog",
  "dialogue",
  "chosen",
  "prompt",
];

/** The recorded message of a turn; undefined where the record has no list that tells. */
export function recordedOf(record: Record<string, unknown> | null, turn: Turn): unknown {
  if (record === null || turn.recorded === null) return undefined;
  for (const name of LISTS) {
    const list = record[name];
    if (Array.isArray(list) && turn.recorded < list.length) return list[turn.recorded];
  }
  return undefined;
}

/** Every text in a value, however deep. */
export function textsOf(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value === "string") found.add(value);
  else if (Array.isArray(value)) for (const one of value) textsOf(one, found);
  else if (typeof value === "object" && value !== null)
    for (const one of Object.values(value)) textsOf(one, found);
  return found;
}

/** Whether a text stands in the record as it is, or as a part of one that does. */
export function isRecorded(texts: ReadonlySet<string>, text: string): boolean {
  if (texts.has(text)) return true;
  for (const one of texts) if (one.includes(text)) return true;
  return false;
}

export interface DiffLine {
  sign: " " | "-" | "+";
  text: string;
}

const MOST_LINES = 2000;

/** The lines of two texts, those that both have in the same order once; of very long texts all as changed. */
export function diffLines(before: string, after: string): DiffLine[] {
  const [left, right] = [before.split("\n"), after.split("\n")];
  if (left.length * right.length > MOST_LINES ** 2) return [...signed("-", left), ...signed("+", right)];
  const lengths = commonLengths(left, right);
  const lines: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < left.length && j < right.length) {
    if (left[i] === right[j]) {
      lines.push({ sign: " ", text: left[i] ?? "" });
      i += 1;
      j += 1;
    } else if ((lengths[i + 1]?.[j] ?? 0) >= (lengths[i]?.[j + 1] ?? 0)) {
      lines.push({ sign: "-", text: left[i] ?? "" });
      i += 1;
    } else {
      lines.push({ sign: "+", text: right[j] ?? "" });
      j += 1;
    }
  }
  return [...lines, ...signed("-", left.slice(i)), ...signed("+", right.slice(j))];
}

function signed(sign: "-" | "+", lines: readonly string[]): DiffLine[] {
  return lines.map((text) => ({ sign, text }));
}

/** (left + 1, right + 1) how many lines both have from each place on. */
function commonLengths(left: readonly string[], right: readonly string[]): Uint32Array[] {
  const rows = Array.from({ length: left.length + 1 }, () => new Uint32Array(right.length + 1));
  for (let i = left.length - 1; i >= 0; i -= 1) {
    const [row, below] = [rows[i], rows[i + 1]];
    if (!row || !below) continue;
    for (let j = right.length - 1; j >= 0; j -= 1)
      row[j] = left[i] === right[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
  }
  return rows;
}
