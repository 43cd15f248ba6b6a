import { expect, test } from "./fixtures";

const FIRST_LOAD_BYTES = 200_000;

test("the first load is small", async ({ page }) => {
  let bytes = 0;
  const counted: Promise<void>[] = [];
  page.on("response", (response) => {
    if (!response.url().includes("/page/")) return;
    counted.push(
      response
        .request()
        .sizes()
        .then(({ responseBodySize }) => {
          bytes += responseBodySize;
        }),
    );
  });
  await page.goto("");
  await page.waitForLoadState("networkidle");
  await Promise.all(counted);
  expect(bytes).toBeGreaterThan(10_000);
  expect(bytes).toBeLessThan(FIRST_LOAD_BYTES);
});
