import { violations } from "./axe";
import { expect, test } from "./fixtures";

test("the palette leads to a dataset by its name", async ({ page }) => {
  await page.goto("");
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox", { name: "Go to" }).fill("instr rows");
  await expect(page.getByRole("option", { name: "instructions: rows" })).toHaveAttribute("data-active-item");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/page\/datasets\/instructions$/);
});

test("a question mark shows the keys", async ({ page }) => {
  await page.goto("");
  await page.getByRole("heading", { level: 1 }).waitFor();
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog", { name: "Keyboard shortcuts" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toHaveCount(0);
});

test("a theme is kept", async ({ page }) => {
  await page.goto("");
  await page.getByLabel("Theme").selectOption("dark");
  await page.reload();
  await expect(page.locator("html")).toHaveAttribute("data-theme", "dark");
});

test("a place that is none says where to go", async ({ page }) => {
  await page.goto("nowhere/at/all");
  await page.getByRole("link", { name: "Go to the datasets" }).click();
  await expect(page.getByRole("heading", { level: 1, name: "Datasets" })).toBeVisible();
});

for (const colorScheme of ["light", "dark"] as const) {
  for (const place of ["", "mix", "jobs", "jobs/new", "settings"]) {
    test(`axe finds nothing: /${place}, ${colorScheme}`, async ({ page }) => {
      await page.emulateMedia({ colorScheme });
      await page.goto(place);
      await page.getByRole("heading", { level: 1 }).waitFor();
      await page.waitForLoadState("networkidle");
      expect(await violations(page)).toEqual([]);
    });
  }
}
