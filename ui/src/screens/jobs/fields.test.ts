import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { type Description, faultOf, fieldsOf, optionsOf } from "./fields";
import { KINDS } from "./jobs";

const description = JSON.parse(readFileSync("../docs/reference/openapi.json", "utf8")) as Description;

test.each(KINDS)("every option of a job has a meaning: %s", (kind) => {
  const fields = fieldsOf(description, kind);
  expect(fields.map(({ name }) => name)).toContain("seed");
  expect(fields.filter(({ meaning }) => meaning === "")).toEqual([]);
});

test("what must be said comes first", () => {
  const [first] = fieldsOf(description, "export");
  expect(first).toMatchObject({ name: "to", isRequired: true, kind: "text" });
});

test("an option that may be left open has the limits of its value", () => {
  const rate = fieldsOf(description, "train").find(({ name }) => name === "learning_rate");
  expect(rate).toMatchObject({ kind: "number", least: 0, most: 1, isRequired: false, usual: "" });
  const method = fieldsOf(description, "train").find(({ name }) => name === "method");
  expect(method?.choices).toEqual(["lora", "full"]);
});

test("options are sent as what they are, and only those that were said", () => {
  const typed = { learning_rate: "1e-4", max_steps: " 10 ", method: "lora", epochs: "" };
  expect(optionsOf(fieldsOf(description, "train"), typed)).toEqual({
    learning_rate: 0.0001,
    max_steps: 10,
    method: "lora",
  });
});

test("a fault stands at its field", () => {
  const faults = [{ at: "body.train.max_steps", error: "Input should be greater than or equal to 1" }];
  expect(faultOf(faults, "max_steps")).toBe("Input should be greater than or equal to 1");
  expect(faultOf(faults, "epochs")).toBeNull();
});
