import { expect, test } from "vitest";
import { measuresOf } from "./Selection";

const SIDE = {
  rows: 10,
  examples: 10,
  tokens: 2000,
  trained_tokens: 1000,
  sources: { facts: 10 },
  trained_by_kind: { answer: 900, stop: 100 },
  lengths: { "50": 180, max: 400 },
  perplexity: { quartile_1: 4.56789, median: 5, quartile_3: 51234.5 },
};

test("both sides are told by the same measures, whatever sources and kinds each has", () => {
  const control = { ...SIDE, sources: { facts: 5, chats: 5 }, perplexity: {} };
  const told = Object.fromEntries(measuresOf(SIDE, control).map(({ name, values }) => [name, values]));
  expect(told["from facts"]).toEqual(["100 %", "50 %"]);
  expect(told["from chats"]).toEqual(["0 %", "50 %"]);
  expect(told["trained: answer"]).toEqual(["90 %", "90 %"]);
  expect(told["perplexity, quartile 1"]).toEqual(["4.568", "–"]);
  expect(told["perplexity, quartile 3"]).toEqual(["51,235", "–"]);
});
