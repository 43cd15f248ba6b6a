import { expect, it } from "vitest";
import row from "../tokens/recorded/row-1.json";
import type { Row } from "./row";
import { diffLines, isRecorded, recordedOf, textsOf } from "./source";
import { anchorOf, pretty, turnAt, turnsOf } from "./turns";

const { conversation, record } = row as unknown as Row;
const turns = conversation ? turnsOf(conversation) : [];

it("counts what was recorded as one message as one turn", () => {
  expect(turns.map(({ recorded, messages }) => [recorded, messages.length])).toEqual([
    [0, 1],
    [1, 2],
    [2, 1],
    [3, 1],
  ]);
  expect(turns.map(anchorOf)).toEqual(["turn-0", "turn-1", "turn-2", "turn-3"]);
  expect([turnAt(turns, "#turn-2"), turnAt(turns, "#nothing")]).toEqual([2, -1]);
});

it("finds the recorded message of a turn, and what is said as it was recorded", () => {
  const [, second] = turns;
  const recorded = second && recordedOf(record ?? null, second);
  expect(recorded).toMatchObject({ role: "assistant", reasoning_content: "I should look." });
  expect(isRecorded(textsOf(record), "I should look.")).toBe(true);
  expect(isRecorded(textsOf(record), "I should not look.")).toBe(false);
});

it("writes JSON on several lines without touching numbers or keys", () => {
  expect(pretty('{"a":10000000000000000001,"a":[1.0,{}]}')).toBe(
    '{\n  "a": 10000000000000000001,\n  "a": [\n    1.0,\n    {}\n  ]\n}',
  );
  expect(pretty("[not JSON")).toBe("[not JSON");
});

it("says which lines of a text are gone and which are new", () => {
  const signs = diffLines("a\nb\nc", "a\nB\nc").map(({ sign, text }) => sign + text);
  expect(signs).toEqual([" a", "-b", "+B", " c"]);
});
