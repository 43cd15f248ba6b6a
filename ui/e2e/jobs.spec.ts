import type { Page } from "@playwright/test";
import { expect, test } from "./fixtures";
import { Server } from "./server";

/** Start a prepare job on a dataset, in the form. */
async function startJob(page: Page, url: string, dataset: string): Promise<void> {
  await page.goto(`${url}/page/jobs/new?dataset=${dataset}&kind=prepare`);
  await page.getByRole("button", { name: "Start the job" }).click();
  await expect(page).toHaveURL(/\/page\/jobs\/[0-9a-f]{32}$/);
}

const status = (page: Page) => page.locator(".facts .badge").first();

test("a job is started, watched to its end, and what came of it lies there", async ({ page, server }) => {
  await startJob(page, server.url, "assistant");
  await expect(status(page)).toHaveText(/done/, { timeout: 60_000 });
  await expect(page.getByText("manifest.json").first()).toBeVisible();
  await page.goto(`${server.url}/page/jobs`);
  await expect(page.getByRole("link", { name: /prepare/ }).first()).toBeVisible();
});

test("a job is cancelled once that was confirmed, and started again", async ({ page }) => {
  const server = await new Server(["--workers", "0"]).start();
  try {
    await startJob(page, server.url, "assistant");
    await expect(status(page)).toHaveText(/queued/);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("button", { name: "Keep it as it is" }).click();
    await expect(status(page)).toHaveText(/queued/);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("button", { name: "Cancel the job" }).click();
    await expect(status(page)).toHaveText(/cancelled/);
    const first = page.url();
    await page.getByRole("button", { name: "Start it again" }).click();
    await expect(status(page)).toHaveText(/queued/);
    expect(page.url()).not.toBe(first);
  } finally {
    await server.remove();
  }
});

test("a job is followed over the death of the server", async ({ page }) => {
  const server = await new Server(["--lease", "2"]).start();
  try {
    await startJob(page, server.url, "weighted");
    await expect(status(page)).toHaveText(/queued|running/);
    await server.stop("SIGKILL");
    await expect(page.getByText(/Reconnecting/).first()).toBeVisible({ timeout: 20_000 });
    await server.start();
    await expect(page.getByText(/Reconnecting/)).toHaveCount(0, { timeout: 30_000 });
    await expect(status(page)).toHaveText(/done/, { timeout: 90_000 });
  } finally {
    await server.remove();
  }
});

test("a server that only reads starts and takes nothing", async ({ page }) => {
  const server = await new Server(["--read-only", "--workers", "0"]).start();
  try {
    await page.goto(`${server.url}/page/jobs/new?dataset=assistant&kind=prepare`);
    await expect(page.getByRole("button", { name: "Start the job" })).toBeDisabled();
    await page.goto(`${server.url}/page/settings`);
    await expect(page.getByText(/only reads|read-only/i).first()).toBeVisible();
  } finally {
    await server.remove();
  }
});

test("a token is asked for, and again once it was revoked; the screen stays", async ({ page }) => {
  const server = await new Server(["--workers", "0"]).start();
  try {
    const token = server.token("admin");
    await page.goto(`${server.url}/page/`);
    await page.getByRole("textbox", { name: "Access token" }).fill(token);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("link", { name: "assistant" }).first()).toBeVisible();
    server.turnmill("access-token", "revoke", "admin", "--database", server.database);
    await page.waitForTimeout(1500); // a server remembers a token for a second
    await page.reload();
    await expect(page.getByRole("dialog", { name: /access token/ })).toBeVisible();
    await page.getByRole("textbox", { name: "Access token" }).fill(server.token("read", "--expires", "1h"));
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("link", { name: "assistant" }).first()).toBeVisible();
  } finally {
    await server.remove();
  }
});
