/** Where in a message a token stands: templates write a message's text as it is, or trimmed. */
import type { ReadMessage } from "../conversation/row";
import { saidBy } from "../conversation/turns";
import type { Reading } from "./reading";

const KINDS_OF: Record<ReturnType<typeof saidBy>, readonly string[]> = {
  reasoning: ["reasoning"],
  call: ["call"],
  result: ["result"],
  text: ["answer", "user", "system"],
};

/** Characters [start, end) of a message that a token shows; null where it is not of its text, or that is written otherwise. */
export function placeIn(message: ReadMessage, reading: Reading, position: number): [number, number] | null {
  const segment = reading.segmentAt(position);
  const place = position - segment.first;
  const run = segment.runAt(place);
  if (!KINDS_OF[saidBy(message)].includes(run.kind)) return null;
  const number = segment.runs.indexOf(run);
  const first = segment.runs[number - 1]?.end ?? 0;
  const start = segment.from(first);
  const text = segment.text.slice(start, segment.upTo[run.end - 1]);
  const at = message.text.indexOf(text.trim());
  if (at < 0 || text.trim() === "") return null;
  const shift = at - (start + text.length - text.trimStart().length);
  const [low, high] = [segment.from(place) + shift, (segment.upTo[place] ?? 0) + shift];
  return low >= 0 && high > low && high <= message.text.length ? [low, high] : null;
}
