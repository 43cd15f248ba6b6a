import { expect, test } from "vitest";
import { merged, runOf } from "./metrics";

/** As a run logs them. */
const LINES = [
  { step: 1, epoch: 0.25, loss: 2, learning_rate: 2e-4, seconds: 10 },
  { step: 2, epoch: 0.5, loss: 1.5, learning_rate: 1e-4, seconds: 20 },
  { step: 2, epoch: 0.5, "eval/loss": 1.8, "eval/ppl": 6, "eval/facts/loss": 1.7, best: true },
  { step: 4, epoch: 1, micro_batches: 8 },
  { step: 4, epoch: 1, loss: 1, seconds: 40 },
  { step: 4, epoch: 1, "eval/loss": 1.9, best: false },
];

test("each loss is a curve over all steps, with gaps where it was not measured", () => {
  const run = runOf(LINES, null);
  expect(run.steps).toEqual([1, 2, 4]);
  expect(run.losses).toEqual([
    { name: "training", values: [2, 1.5, 1] },
    { name: "held out", values: [null, 1.8, 1.9] },
    { name: "held out: facts", values: [null, 1.7, null] },
  ]);
  expect(run.rates).toEqual([{ name: "learning rate", values: [2e-4, 1e-4, null] }]);
});

test("the best checkpoint is the last that was the best when it was measured", () => {
  expect(runOf(LINES, null).best).toEqual({ step: 2, loss: 1.8 });
});

test("speed is known where the tokens of an epoch are", () => {
  expect(runOf(LINES, 4000).speeds).toEqual([{ name: "trained tokens a second", values: [null, 100, 100] }]);
  expect(runOf(LINES, null).speeds).toEqual([]);
});

test("a run that was stopped and goes on has no speed over the pause", () => {
  const again = [...LINES.slice(0, 2), { step: 3, epoch: 0.75, loss: 1, seconds: 5 }];
  expect(runOf(again, 4000).speeds[0]?.values).toEqual([null, 100, null]);
});

test("a step that is logged again takes the place of what it was", () => {
  const lines = merged(LINES.slice(0, 3), [{ ...LINES[1], loss: 1.4 }, LINES[4] ?? {}]);
  expect(lines.map(({ step, loss }) => [step, loss])).toEqual([
    [1, 2],
    [2, 1.4],
    [2, undefined],
    [4, 1],
  ]);
});

test("nothing logged is no run", () => {
  expect(runOf([], 10)).toMatchObject({ steps: [], losses: [], best: null, last: null });
});
