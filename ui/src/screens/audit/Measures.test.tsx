import { render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { Measures } from "./Measures";

/** As a job's `result` has it. */
const RESULT = {
  turns: 4,
  measures: {
    exact: { model: { mean: 0, error: 0, turns: 4 } },
    f1: { model: { mean: 0.5164002664, error: 0.06270544, turns: 4 } },
  },
};

test("each measure is told with its error", () => {
  render(<Measures result={RESULT} />);
  const cells = within(screen.getByRole("row", { name: /^F1/ })).getAllByRole("cell");
  expect(cells.map((cell) => cell.textContent)).toEqual(["0.516", "0.063", "4"]);
});

test("before there is a result there is no table", () => {
  render(<Measures result={{}} />);
  expect(screen.queryByRole("table")).toBeNull();
});
