import { describe, expect, it } from "vitest";
import { countsOf, totalsOf, trainedStarts, turnStarts } from "./counts";
import { lineOf, textLines, tokenLines } from "./lines";
import { type Explained, Reading } from "./reading";
import agent from "./recorded/agent.json";
import cut from "./recorded/cut.json";
import parts from "./recorded/parts.json";
import text from "./recorded/text.json";
import tooLong from "./recorded/too-long.json";
import { shownToken } from "./shown";
import { piecesOf } from "./TextLine";
import { lineStep } from "./useTokenKeys";

const RECORDED = { agent, cut, parts, text, tooLong };
const readingOf = (answer: unknown) => new Reading(answer as Explained);

function facts(reading: Reading) {
  return Array.from({ length: reading.count }, (_, position) => reading.fact(position));
}

describe.each(Object.entries(RECORDED))("%s", (_, answer) => {
  const reading = readingOf(answer);

  it("tells of each example what the server tells", () => {
    for (const example of answer.examples) {
      const of = facts(reading).filter(({ part }) => part === example.part);
      if (example.input_ids === null) continue;
      expect(of.map(({ id }) => id)).toEqual(example.input_ids);
      expect(of.map(({ label }) => label)).toEqual(example.labels);
      expect(of.filter(({ isControl }) => isControl).map(({ place }) => place)).toEqual(example.control);
      expect(of.map(({ isTrained }) => isTrained)).toEqual(of.map(({ why }) => why === "trained"));
    }
  });

  it.each([20, 80])("has each token in one line of %i columns", (columns) => {
    const lines = tokenLines(reading, columns).filter(({ kind }) => kind === "tokens");
    const positions = lines.flatMap(({ segment, from, to }) =>
      Array.from({ length: to - from }, (_, step) => segment.first + from + step),
    );
    expect(positions).toEqual([...positions.keys()]);
    expect(positions).toHaveLength(reading.count);
  });

  it("has the whole text in its lines, and finds the line of each token", () => {
    const lines = textLines(reading, 20);
    const said = lines.flatMap((line) => (line.kind === "tokens" ? piecesOf(line) : []));
    expect(said.map((piece) => piece.text).join("")).toBe(reading.segments.map((one) => one.text).join(""));
    for (const { position, place, part } of facts(reading)) {
      const line = tokenLines(reading, 30)[lineOf(tokenLines(reading, 30), position)];
      expect(line?.segment.part).toBe(part);
      expect(place >= (line?.from ?? 1) && place < (line?.to ?? 0)).toBe(true);
    }
  });
});

it("tells a character beyond the first plane where the server counts one", () => {
  const spelt = facts(readingOf(agent)).filter(({ bytes }) => bytes !== undefined);
  expect(spelt.map(({ bytes }) => bytes).join("")).toBe("e29880efb88f");
  expect(facts(readingOf(agent)).some((fact) => fact.text.includes("👩"))).toBe(true);
  expect(shownToken("👩", "20f0")).toBe("␣\\xf0");
});

it("shows what no example has behind the example that ends before it", () => {
  const reading = readingOf(cut);
  expect(reading.segments.map(({ part }) => part)).toEqual([0, null]);
  expect(reading.segments.map((one) => one.text).join("")).toBe(cut.text);
  expect(facts(reading).at(-1)?.why).toBe("cut");
});

it("shows the text of a row that leaves, none of it trained", () => {
  const reading = readingOf(tooLong);
  expect(reading.segments.map((one) => one.text).join("")).toBe(tooLong.text);
  expect(facts(reading).every(({ isTrained, why }) => !isTrained && why === "rejected")).toBe(true);
});

it("counts the tokens of messages, and knows where turns and trained tokens begin", () => {
  const reading = readingOf(agent);
  const [example] = agent.examples;
  const totals = totalsOf(countsOf(reading));
  expect(totals.tokens).toBe(example?.input_ids.length);
  expect(totals.trained).toBe(example?.labels.filter((label) => label !== -100).length);
  expect(turnStarts(reading).map((position) => reading.fact(position).message)).toContain(3);
  for (const position of trainedStarts(reading)) expect(reading.fact(position).isTrained).toBe(true);
});

it("goes a line down and up again", () => {
  const lines = tokenLines(readingOf(agent), 40);
  const down = lineStep(lines, 0, 1);
  expect(down).toBeGreaterThan(0);
  expect(lineStep(lines, down, -1)).toBe(0);
});
