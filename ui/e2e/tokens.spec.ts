import { join } from "node:path";
import type { Page } from "@playwright/test";
import { violations } from "./axe";
import { expect, test } from "./fixtures";
import { python, type Server } from "./server";

interface Shown {
  at: number;
  part: string;
  id: number;
  label: number;
}

/** The tokens that the viewer shows, from the first to the last, by scrolling through them. */
async function shownTokens(page: Page): Promise<Shown[]> {
  await page.locator(".lines .token").first().waitFor();
  return page.evaluate(async () => {
    const frame = document.querySelector(".lines .token")?.closest(".lines");
    if (!frame) throw new Error("the tokens are in no list");
    const found = new Map<number, Shown>();
    const drawn = () => new Promise((passed) => requestAnimationFrame(() => requestAnimationFrame(passed)));
    for (let top = 0; ; top += frame.clientHeight / 2) {
      frame.scrollTop = top;
      await drawn();
      for (const token of frame.querySelectorAll<HTMLElement>(".token")) {
        const { at, part, id, label } = token.dataset;
        found.set(Number(at), { at: Number(at), part: String(part), id: Number(id), label: Number(label) });
      }
      if (top >= frame.scrollHeight - frame.clientHeight) break;
    }
    return [...found.values()].sort((one, other) => one.at - other.at);
  });
}

/** Ids and labels of the examples that the page shows, a list each. */
async function ofPage(page: Page): Promise<[ids: number[], labels: number[]][]> {
  const parts = new Map<string, [number[], number[]]>();
  for (const { part, id, label } of await shownTokens(page)) {
    if (part === "cut") continue;
    const [ids, labels] = parts.get(part) ?? parts.set(part, [[], []]).get(part) ?? [[], []];
    ids.push(id);
    labels.push(label);
  }
  return [...parts.values()];
}

/** The same as `turnmill explain --json` says it. */
function ofCommand(file: string, row: number, model: string): [number[], number[]][] {
  const said = python("-m", "turnmill", "explain", file, String(row), "--model", model, "--json");
  const { examples } = JSON.parse(said) as { examples: { input_ids: number[]; labels: number[] }[] };
  return examples.map(({ input_ids, labels }) => [input_ids, labels]);
}

const PREPARED = `
import json, sys
import turnmill
from turnmill.files.packed import packed_row
from turnmill.files.prepared import PreparedData
turnmill.prepare(sys.argv[1], model=sys.argv[2], output=sys.argv[3])
prepared = PreparedData(sys.argv[3])
rows = {row.id: row.meta["row"] for row in prepared.conversations()}
found = {}
examples = prepared.examples()
for number in range(len(examples)):
    made = packed_row(examples.laid_out([number]))
    found.setdefault(rows[made["row_ids"][0]], []).append([made["input_ids"].tolist(), made["labels"].tolist()])
print(json.dumps(found))
`;

/** The same as it lies in prepared data, by row. */
function ofPrepared(server: Server, file: string): Record<string, [number[], number[]][]> {
  const out = join(server.place, `prepared-${Date.now()}`);
  return JSON.parse(python("-c", PREPARED, file, join(server.place, "models/tiny"), out));
}

test("the page, the command and the prepared data say the same of every token", async ({ page, server }) => {
  const file = join(server.place, "datasets_training/assistant/assistant.jsonl");
  const prepared = ofPrepared(server, file);
  for (const line of [1, 4, 7, 11, 15, 20]) {
    await page.goto(`datasets/assistant/rows/${line}/tokens?model=tiny`);
    const shown = await ofPage(page);
    expect(shown).toEqual(ofCommand(file, line - 1, join(server.place, "models/tiny")));
    expect(shown).toEqual(prepared[line - 1] ?? []);
  }
});

test("what tokens cost the model is what the command says", async ({ page, server }) => {
  await page.goto("datasets/assistant/rows/7/tokens?model=tiny&score=true");
  await page.locator(".lines .token.scored").first().waitFor({ timeout: 60_000 });
  const first = await page
    .locator(".lines .token")
    .evaluateAll((tokens) => tokens.slice(0, 20).map((token) => (token as HTMLElement).dataset.nats ?? null));
  const file = join(server.place, "datasets_training/assistant/assistant.jsonl");
  const model = join(server.place, "models/tiny");
  const said = server.turnmill("explain", file, "6", "--model", model, "--score.on", "true", "--json");
  const { examples } = JSON.parse(said) as { examples: { nll: (number | null)[] }[] };
  expect(first.map((nats) => (nats === null ? null : Number(nats)))).toEqual(examples[0]?.nll.slice(0, 20));
});

test("the keyboard steps through tokens, messages and what trains", async ({ page }) => {
  await page.goto("datasets/assistant/rows/7/tokens?model=tiny");
  await page.locator(".lines .token").first().waitFor();
  await page.waitForLoadState("networkidle");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await expect(page.locator(".token.active")).toHaveAttribute("data-at", /^[12]$/);
  await page.keyboard.press("t");
  await expect(page.locator(".token.active")).toHaveAttribute("data-trained", "true");
  await page.keyboard.press("]");
  await expect(page.locator(".token.active")).toHaveAttribute("data-message", "2");
});

test("pointing at a token says why it trains, and marks its text", async ({ page }) => {
  await page.goto("datasets/assistant/rows/7/tokens?model=tiny");
  await page.locator('.token[data-trained="true"]').first().hover();
  await expect(page.locator(".piece.active")).toHaveCount(1);
  await expect(page.locator(".token.active")).toHaveCount(1);
});

test("two templates stand side by side", async ({ page }) => {
  await page.goto("datasets/assistant/rows/7/tokens?template=chatml&against=llama3");
  await expect(page.getByText("<|start_header_id|>").first()).toBeVisible();
  await expect(page.getByText("<|im_start|>").first()).toBeVisible();
});

test("a row that leaves says why, and stays to be read", async ({ page }) => {
  await page.goto("datasets/faulty/rows/3/tokens?model=tiny");
  await expect(page.getByText("user-after-user").first()).toBeVisible();
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const place of ["datasets/assistant/rows/7", "datasets/assistant/rows/7/tokens?model=tiny"]) {
    test(`axe finds nothing: ${place}, ${colorScheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await page.goto(place);
      await page.getByText("221").first().waitFor();
      await page.waitForLoadState("networkidle");
      expect(await violations(page)).toEqual([]);
    });
  }
}
