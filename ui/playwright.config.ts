import { defineConfig } from "@playwright/test";

const isRoot = process.getuid?.() === 0;
/** Chromium asks for nothing outside this machine. */
const QUIET = [
  "--disable-gpu",
  "--disable-quic",
  "--disable-background-networking",
  "--disable-component-update",
];

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  workers: 1, // each server has its own shelf; two cores are not enough for two Chromiums beside jobs
  timeout: 60_000,
  expect: { timeout: 10_000 },
  reporter: "line",
  forbidOnly: true,
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
      args: [...QUIET, ...(isRoot ? ["--no-sandbox"] : [])],
    },
    trace: "retain-on-failure",
  },
  projects: [
    { name: "tests", testMatch: "*.spec.ts" },
    { name: "tour", testMatch: "tour.ts" },
  ],
});
