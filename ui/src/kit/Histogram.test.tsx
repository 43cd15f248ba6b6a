import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { Histogram } from "./Histogram";

const BARS = [
  { label: "1 turns", count: 3 },
  { label: "2 to 3 turns", count: 1200, isChosen: true },
];

test("a bar is chosen with the pointer, and with the keyboard", async () => {
  const chosen = vi.fn();
  render(<Histogram title="Rows by turns" bars={BARS} onChoose={chosen} />);
  await userEvent.click(screen.getByRole("button", { name: "1 turns: 3 rows" }));
  screen.getByRole("button", { name: "2 to 3 turns: 1,200 rows" }).focus();
  await userEvent.keyboard("{Enter} ");
  expect(chosen.mock.calls).toEqual([[0], [1], [1]]);
});

test("a bar says whether it is chosen, and the table says the same counts", () => {
  render(<Histogram title="Rows by turns" bars={BARS} onChoose={() => undefined} />);
  expect(screen.getByRole("button", { pressed: true })).toHaveAccessibleName("2 to 3 turns: 1,200 rows");
  expect(screen.getByText("1,200")).toBeInTheDocument();
});
