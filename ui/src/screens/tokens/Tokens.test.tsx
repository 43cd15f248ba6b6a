import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { render, screen } from "@testing-library/react";
import { beforeEach, expect, it, vi } from "vitest";
import { Route, Router } from "wouter";
import { memoryLocation } from "wouter/memory-location";
import agent from "./recorded/agent.json";
import codes from "./recorded/codes.json";
import leaves from "./recorded/leaves.json";
import refused from "./recorded/refused.json";
import row from "./recorded/row-1.json";
import left from "./recorded/row-3.json";
import Tokens from "./Tokens";

const ABOUT = { models: ["tiny"], templates: ["chatml", "llama3"] };

/** Answers as the server did; a request has what its path ends with. */
function answering(said: Record<string, [status: number, body: unknown]>): void {
  vi.spyOn(globalThis, "fetch").mockImplementation(async (request) => {
    const path = new URL((request as Request).url).pathname;
    const [, [status, body]] = Object.entries(said).find(([end]) => path.endsWith(end)) ?? ["", [404, {}]];
    return new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
  });
}

function open(path: string): void {
  const { hook, searchHook } = memoryLocation({ path });
  render(
    <QueryClientProvider client={new QueryClient({ defaultOptions: { queries: { retry: false } } })}>
      <Router hook={hook} searchHook={searchHook}>
        <Route path="/datasets/:name/rows/:line/tokens">
          <Tokens />
        </Route>
      </Router>
    </QueryClientProvider>,
  );
}

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, "clientHeight", "get").mockReturnValue(4000);
  vi.spyOn(HTMLElement.prototype, "clientWidth", "get").mockReturnValue(800);
});

it("shows every token with what the server says of it", async () => {
  answering({ "/about": [200, ABOUT], "/explain": [200, agent], "/rows/1": [200, row] });
  open("/datasets/facts/rows/1/tokens");
  await screen.findByRole("region", { name: "Tokens" });
  await vi.waitFor(() => expect(document.querySelectorAll(".token[data-part]").length).toBeGreaterThan(100));
  const shown = [...document.querySelectorAll<HTMLElement>('.token[data-part="0"]')];
  const [example] = agent.examples;
  expect(shown.map(({ dataset }) => Number(dataset.id))).toEqual(example?.input_ids);
  expect(shown.map(({ dataset }) => Number(dataset.label))).toEqual(example?.labels);
});

it("says why a row leaves", async () => {
  answering({
    "/about": [200, ABOUT],
    "/explain": [200, leaves],
    "/rows/3": [200, left],
    "/codes": [200, codes],
  });
  open("/datasets/facts/rows/3/tokens");
  expect(await screen.findByText(leaves.code)).toBeVisible();
  expect(await screen.findByText(/As it lies in the file/)).toBeVisible();
});

it("shows a row that no template was found for all the same", async () => {
  answering({ "/about": [200, ABOUT], "/explain": [400, refused], "/rows/1": [200, row] });
  open("/datasets/facts/rows/1/tokens?model=none");
  expect(await screen.findByText(refused.detail)).toBeVisible();
  expect(await screen.findByText(/As it lies in the file/)).toBeVisible();
});
