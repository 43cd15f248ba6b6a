/**
 * Walks through every screen of a server that runs, and writes a picture of each: light and dark, wide and narrow.
 *
 * TURNMILL_SERVER: where it answers. TURNMILL_PICTURES: a folder. Jobs that are there are shown, whatever they are.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, type Page, test } from "@playwright/test";

const server = process.env.TURNMILL_SERVER ?? "";
const pictures = process.env.TURNMILL_PICTURES ?? "";
test.skip(!server || !pictures, "TURNMILL_SERVER and TURNMILL_PICTURES say what is shown, and where to");
test.setTimeout(600_000);

interface Job {
  id: string;
  kind: string;
  dataset: string;
  status: string;
}

/** Name of the picture → path below the page. */
async function screens(): Promise<[name: string, path: string][]> {
  const answer = await fetch(`${server}/v1/training/jobs`);
  const { jobs } = (await answer.json()) as { jobs: Job[] };
  const ofJob = (kind: string, dataset: string, name: string, part = ""): [string, string][] => {
    const job = jobs.find((one) => one.kind === kind && one.dataset === dataset && one.status === "done");
    return job ? [[name, `jobs/${job.id}${part}`]] : [];
  };
  return [
    ["datasets", ""],
    ["dataset", "datasets/weighted"],
    ["dataset-filtered", "datasets/tool-calls?min_turns=6&calls=true"],
    ["conversation", "datasets/assistant/rows/7"],
    ["conversation-long", "datasets/long/rows/1"],
    ["tokens", "datasets/assistant/rows/7/tokens?model=tiny"],
    ["tokens-two-templates", "datasets/assistant/rows/7/tokens?template=chatml&against=llama3"],
    ["quarantine", "datasets/faulty/quarantine?code=user-after-user"],
    ["compare", "datasets/assistant/compare?against=tools"],
    ["mix", "mix?weight.weighted=2&weight.tool-calls=1&weight.assistant=0.5"],
    ["jobs", "jobs"],
    ["job-new", "jobs/new?dataset=assistant"],
    ...ofJob("prepare", "weighted", "job"),
    ...ofJob("prepare", "tool-calls", "selection"),
    ...ofJob("train", "world-facts", "training", "/training"),
    ...ofJob("audit", "world-facts", "audit", "/audit"),
    ...ofJob("prepare", "faulty", "job-quarantine", "/quarantine"),
    ["settings", "settings"],
  ];
}

async function settled(page: Page): Promise<void> {
  await page.getByRole("heading", { level: 1 }).waitFor();
  await expect(page.getByRole("status").filter({ hasText: /^Reading/ })).toHaveCount(0, { timeout: 60_000 });
  await page.waitForTimeout(300); // what is drawn a frame later: curves, lists that measured themselves
}

for (const colorScheme of ["light", "dark"] as const) {
  for (const [size, width] of [
    ["wide", 1280],
    ["narrow", 360],
  ] as const) {
    test(`${colorScheme}, ${size}`, async ({ browser }) => {
      mkdirSync(pictures, { recursive: true });
      const page = await browser.newPage({ colorScheme, viewport: { width, height: 900 } });
      const said: string[] = [];
      page.on("pageerror", (error) => said.push(error.message));
      for (const [name, place] of await screens()) {
        await page.goto(`${server}/page/${place}`);
        await settled(page);
        const path = join(pictures, `${name}-${size}-${colorScheme}.png`);
        await page.screenshot({ path, fullPage: name === "selection" }); // what it is about stands at the end
        console.log(`  ${name}-${size}-${colorScheme}.png`);
      }
      expect(said).toEqual([]);
    });
  }
}
