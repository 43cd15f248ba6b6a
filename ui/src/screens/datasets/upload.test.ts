import { expect, test } from "vitest";
import { formatOf } from "./upload";

test.each([
  ["facts.jsonl", "jsonl"],
  ["Facts.JSON", "json"],
  ["facts.parquet", "parquet"],
  ["facts", "jsonl"],
])("the format of %s is %s", (name, format) => {
  expect(formatOf(name)).toBe(format);
});
