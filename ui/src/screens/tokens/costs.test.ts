import { expect, test } from "vitest";
import { costSaid, levelOf } from "./costs";

test.each([
  [0, 0],
  [0.05, 1],
  [1.49, 2],
  [3, 4],
  [12, 5],
])("%d nats are of level %d", (nats, level) => {
  expect(levelOf(nats)).toBe(level);
});

test("a cost is said with the probability that it stands for", () => {
  expect(costSaid(Math.log(2))).toBe("0.69 nats: the model gave it 50 %");
  expect(costSaid(11)).toBe("11.00 nats: the model gave it less than 0.1 %");
});
