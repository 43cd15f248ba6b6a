import { violations } from "./axe";
import { expect, test } from "./fixtures";

const GOOD = '{"messages": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "I."}]}\n';
const BROKEN = `${GOOD}{"messages": [\n`;

function file(name: string, text: string) {
  return { name, mimeType: "application/jsonl", buffer: Buffer.from(text) };
}

test("a good file is uploaded and opened; one with a fault says its line, and leaves the good one as it was", async ({
  page,
}) => {
  await page.goto("");
  const chooser = page.locator('input[type="file"]');
  await chooser.setInputFiles(file("uploaded.jsonl", GOOD));
  await page.getByText("It is on the shelf").waitFor();
  await expect(page.locator("table.datasets").getByRole("link", { name: "uploaded" })).toBeVisible();
  await chooser.setInputFiles(file("uploaded.jsonl", BROKEN));
  await expect(page.getByRole("alert")).toContainText("line 2");
  await page.getByRole("region", { name: "Upload of uploaded.jsonl" }).getByRole("link").click();
  await expect(page.getByText("1 of 1 rows")).toBeVisible();
});

test("a file that is dropped is uploaded", async ({ page }) => {
  await page.goto("");
  const dropped = await page.evaluateHandle((text) => {
    const transfer = new DataTransfer();
    transfer.items.add(new File([text], "dropped.jsonl"));
    return transfer;
  }, GOOD);
  await page.getByText("Upload a file").waitFor();
  await page.locator(".drop").dispatchEvent("drop", { dataTransfer: dropped });
  await expect(page.locator("table.datasets").getByRole("link", { name: "dropped" })).toBeVisible();
});

test("directories that are no datasets say why", async ({ page }) => {
  await page.goto("");
  await expect(page.getByText("the data file 'gone.jsonl' is not there")).toBeVisible();
});

test("a bar filters the rows, the address keeps it, and back shows all again", async ({ page }) => {
  await page.goto("datasets/tool-calls");
  await page.getByText(/found in the first/).waitFor();
  const bar = page
    .getByRole("group", { name: "Rows by turns" })
    .getByRole("button", { name: /: [1-9]/ })
    .first();
  await bar.focus();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/min_turns=\d+/);
  await expect(bar).toHaveAttribute("aria-pressed", "true");
  const said = Number((await bar.getAttribute("aria-label"))?.match(/: ([\d,]+) rows/)?.[1]);
  await expect(page.getByText(new RegExp(`^${said} found`))).toBeVisible();
  await page.reload();
  await expect(page.getByText(new RegExp(`^${said} found`))).toBeVisible();
  await page.goBack();
  await expect(page).not.toHaveURL(/min_turns/);
});

test("what is searched for is found", async ({ page }) => {
  await page.goto("datasets/assistant");
  await page.getByRole("searchbox").fill("221 PRIME");
  await page.keyboard.press("Enter");
  await expect(page.getByText(/^1 found/)).toBeVisible();
  await page.getByRole("link", { name: /^row 7/ }).click();
  await expect(page.getByRole("heading", { level: 1, name: /row 7/ })).toBeVisible();
  await page.keyboard.press("j");
  await expect(page.getByRole("heading", { level: 1, name: /row 8/ })).toBeVisible();
  await page.keyboard.press("k");
  await expect(page).toHaveURL(/rows\/7/);
});

test("a long list is read on as it is scrolled", async ({ page }) => {
  await page.goto("datasets/weighted");
  const list = page.getByRole("region", { name: "Rows", exact: true });
  await expect(page.getByText(/^100 found/)).toBeVisible();
  for (const wanted of [200, 300, 400, 500]) {
    await list.evaluate((frame) => frame.scrollTo(0, frame.scrollHeight));
    await expect(page.getByText(new RegExp(`^${wanted} found`))).toBeVisible();
  }
  await expect(page.getByText(/which are all/)).toBeVisible();
});

test("a quarantine is replayed with repairs, and nothing is written", async ({ page }) => {
  await page.goto("datasets/faulty/quarantine");
  await page.getByRole("button", { name: /^user-after-user/ }).click();
  await expect(page.getByRole("link", { name: /^row 3/ })).toBeVisible();
  await page.getByRole("checkbox", { name: /^merge-turns/ }).check();
  await page.getByRole("button", { name: "Replay" }).click();
  await expect(page.getByRole("row", { name: /user-after-user passes/ })).toBeVisible();
  await page.getByRole("link", { name: "All rows" }).click();
  await expect(page.getByText("1 of 11 rows")).toBeVisible();
});

test("a dataset that is removed is gone once that was confirmed", async ({ page }) => {
  await page.goto("");
  await page.locator('input[type="file"]').setInputFiles(file("short-lived.jsonl", GOOD));
  await page.locator("table.datasets").getByRole("link", { name: "short-lived" }).click();
  await page.getByText("Versions, commands, removal").click();
  await page.getByRole("button", { name: "Remove the dataset" }).click();
  await page.getByRole("button", { name: "Remove short-lived" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Datasets" })).toBeVisible();
  await expect(page.locator("table.datasets").getByRole("link", { name: "short-lived" })).toHaveCount(0);
});

test("a dataset that is not there says so", async ({ page }) => {
  await page.goto("datasets/nothing%20%2F%20of%20the%20kind");
  await expect(page.getByText(/dataset-unknown|not-found/).first()).toBeVisible();
});

const SCREENS = [
  "datasets/tool-calls",
  "datasets/faulty/quarantine?code=blank-text",
  "datasets/assistant/compare?against=tools",
  "mix?weight.weighted=2&weight.tools=1",
];

for (const colorScheme of ["light", "dark"] as const) {
  for (const place of SCREENS) {
    test(`axe finds nothing: ${place}, ${colorScheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await page.goto(place);
      await page.waitForLoadState("networkidle");
      expect(await violations(page)).toEqual([]);
    });
  }
}

for (const place of ["", "jobs", "jobs/new", "settings", "datasets/assistant/rows/7", ...SCREENS]) {
  test(`a narrow window shows all of /${place}`, async ({ page }) => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(place);
    await page.waitForLoadState("networkidle");
    const [content, window] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    expect(content).toBeLessThanOrEqual(window ?? 0);
  });
}
