import { expect, test } from "vitest";
import { mixtureOf, withWeight } from "./mixture";

test("a mixture is what the address says, and nothing else of it", () => {
  const search = new URLSearchParams("weight.facts=2&weight.a.b=0.5&weight.bad=x&weight.less=-1&other=1");
  expect(mixtureOf(search)).toEqual({ facts: 2, "a.b": 0.5 });
});

test("a weight is changed, and a dataset taken out", () => {
  const search = withWeight(new URLSearchParams("weight.facts=2&kept=1"), "chats", 3);
  expect(mixtureOf(search)).toEqual({ facts: 2, chats: 3 });
  expect(withWeight(search, "facts", null).toString()).toBe("kept=1&weight.chats=3");
});
