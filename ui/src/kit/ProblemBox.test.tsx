import { render, screen } from "@testing-library/react";
import userEvent from "@testing-library/user-event";
import { expect, test, vi } from "vitest";
import { ApiProblem, UNREACHABLE } from "@/api/problem";
import { ProblemBox } from "./ProblemBox";

test("a refusal says what, where and its code", () => {
  const faults = [{ file: "a.jsonl", line: 3, error: "no messages", at: null }];
  render(<ProblemBox error={new ApiProblem(400, "file-not-valid", "1 fault", faults)} />);
  expect(screen.getByRole("alert")).toHaveTextContent("Refused (400)");
  expect(screen.getByText("a.jsonl, line 3: no messages")).toBeInTheDocument();
  expect(screen.getByText("file-not-valid")).toBeInTheDocument();
});

test("a server that is gone says what to do, and is asked again", async () => {
  const retry = vi.fn();
  render(<ProblemBox error={UNREACHABLE} onRetry={retry} />);
  expect(screen.getByText(/Start the server again/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole("button", { name: "Try again" }));
  expect(retry).toHaveBeenCalledOnce();
});

test("whatever else was thrown is shown, too", () => {
  render(<ProblemBox error={new TypeError("x is not a function")} />);
  expect(screen.getByText("x is not a function")).toBeInTheDocument();
});
