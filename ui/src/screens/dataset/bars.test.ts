import { expect, test } from "vitest";
import { barsOf, filterOf } from "./bars";

const HISTOGRAM = { edges: [0, 1, 2, 4, 8], counts: [0, 3, 5, 0, 0] };

test("bars end at the last one that has rows", () => {
  expect(barsOf("turns", HISTOGRAM, {}).map(({ label, count }) => [label, count])).toEqual([
    ["0 turns", 0],
    ["1 turns", 3],
    ["2 to 3 turns", 5],
  ]);
});

test("a bar is the filter of its rows, and chosen again it asks for all", () => {
  const filter = filterOf("turns", HISTOGRAM, 2, {});
  expect(filter).toEqual({ min_turns: "2", max_turns: "3" });
  expect(barsOf("turns", HISTOGRAM, filter).map(({ isChosen }) => isChosen)).toEqual([false, false, true]);
  expect(filterOf("turns", HISTOGRAM, 2, filter)).toEqual({ min_turns: "", max_turns: "" });
});

test("the last bar has no upper end", () => {
  expect(filterOf("turns", HISTOGRAM, 4, {})).toEqual({ min_turns: "8", max_turns: "" });
});
