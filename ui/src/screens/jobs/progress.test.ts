import { expect, test } from "vitest";
import type { ServerEvent } from "@/api/events";
import { progressText, stagesOf, stepsOf, timeLeft } from "./progress";

const AUDIT = { task: "audit", number: 2, of: 2 };
const TRAINING = { state: "training", step: 20, steps: 100, loss: 1.2 };

test.each([
  ["audit", "running", AUDIT, "done works"],
  ["audit", "failed", AUDIT, "done failed"],
  ["audit", "cancelled", { ...AUDIT, task: "prepare" }, "cancelled waits"],
  ["audit", "queued", {}, "waits waits"],
  ["prepare", "done", {}, "done"],
  ["train", "running", TRAINING, "done done works"],
  ["train", "running", { state: "carrying" }, "works waits waits"],
  ["train", "done", { state: "done" }, "done done done"],
  ["brew", "running", {}, ""],
])("stages of a job: %s, %s", (kind, status, progress, found) => {
  expect(
    stagesOf({ kind, status, progress })
      .map(({ state }) => state)
      .join(" "),
  ).toBe(found);
});

test.each([
  ["queued", {}, "waits for a worker"],
  ["running", {}, "begins"],
  ["running", AUDIT, "audit (2 of 2)"],
  ["running", TRAINING, "step 20 of 100"],
  ["running", { ...TRAINING, sidecar: "down" }, "step 20 of 100, the sidecar does not answer"],
  ["done", TRAINING, ""],
])("how far a job is, in words: %s", (status, progress, said) => {
  expect(progressText({ kind: "train", status, progress })).toBe(said);
});

test("a training that has not said how many steps there are has none to show", () => {
  expect(stepsOf({ progress: { step: 3 } })).toBeNull();
  expect(stepsOf({ progress: TRAINING })).toEqual({ done: 20, of: 100 });
});

function step(id: number, done: number, at: string): ServerEvent {
  return { id, kind: "progress", data: { step: done, steps: 100, at } };
}

test("what is left is told by the steps that were seen", () => {
  const events = [step(1, 10, "2026-01-01T00:00:00Z"), step(2, 20, "2026-01-01T00:00:10Z")];
  expect(timeLeft(events)).toBe("about 1 min 20 s left");
  expect(timeLeft(events.slice(1))).toBeNull();
  expect(timeLeft([])).toBeNull();
});
