/** What every test has: a server that is shared as long as nobody breaks it, and a page that complains. */
import { test as base, expect } from "@playwright/test";
import { Server } from "./server";

interface Fixtures {
  /** What the browser's console said is wrong, but for answers that are refusals. */
  complaints: string[];
}

interface WorkerFixtures {
  server: Server;
}

export const test = base.extend<Fixtures, WorkerFixtures>({
  server: [
    // biome-ignore lint/correctness/noEmptyPattern: Playwright reads the parameters
    async ({}, use) => {
      const server = await new Server().start();
      await use(server);
      await server.remove();
    },
    { scope: "worker" },
  ],
  baseURL: async ({ server }, use) => use(`${server.url}/page/`),
  complaints: [
    async ({ page }, use) => {
      const complaints: string[] = [];
      page.on("console", (message) => {
        const isAnswer = message.text().startsWith("Failed to load resource"); // said of every refusal
        if (message.type() === "error" && !isAnswer) complaints.push(message.text());
      });
      page.on("pageerror", (error) => complaints.push(error.message));
      await use(complaints);
      expect(complaints).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };
