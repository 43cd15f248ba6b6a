import { afterEach, expect, test, vi } from "vitest";
import { answered, client } from "./client";
import { currentSession, dismissAsking, signIn, signOut } from "./session";

afterEach(() => {
  signOut();
  dismissAsking();
  vi.unstubAllGlobals();
});

function answering(status: number, body: unknown) {
  const asked = vi.fn(async (_request: Request) => Response.json(body, { status }));
  vi.stubGlobal("fetch", asked);
  return asked;
}

test("a request brings the token of this tab", async () => {
  const asked = answering(200, { datasets: [], problems: [], next: null });
  signIn("secret");
  await answered(client.GET("/v1/training/datasets"));
  expect(asked.mock.calls[0]?.[0].headers.get("Authorization")).toBe("Bearer secret");
});

test("a refusal is a problem with its code and its faults", async () => {
  const faults = [{ file: "a.jsonl", line: 3, error: "no messages" }];
  answering(400, { code: "file-not-valid", detail: "it has faults", status: 400, faults });
  const asked = answered(client.GET("/v1/training/datasets"));
  await expect(asked).rejects.toMatchObject({
    status: 400,
    code: "file-not-valid",
    detail: "it has faults",
    faults,
  });
});

test("a token that is refused is asked for, once", async () => {
  answering(401, { code: "token-not-valid", detail: "the token is expired" });
  signIn("old");
  await expect(answered(client.GET("/v1/training/datasets"))).rejects.toMatchObject({ status: 401 });
  expect(currentSession().asked).toBe("the token is expired");
});

test("an answer to a token that was replaced meanwhile asks for none", async () => {
  signIn("old");
  vi.stubGlobal("fetch", async () => {
    signIn("new");
    return Response.json({ code: "token-not-valid", detail: "expired" }, { status: 401 });
  });
  await expect(answered(client.GET("/v1/training/datasets"))).rejects.toMatchObject({ status: 401 });
  expect(currentSession()).toEqual({ token: "new", asked: null });
});

test("no answer at all is a problem that passes", async () => {
  vi.stubGlobal("fetch", async () => {
    throw new TypeError("Failed to fetch");
  });
  const asked = answered(client.GET("/v1/training/datasets"));
  await expect(asked).rejects.toMatchObject({ code: "server-unreachable", isPassing: true });
});

test("an answer that is not JSON is a problem, too", async () => {
  vi.stubGlobal("fetch", async () => new Response("<h1>Bad gateway</h1>", { status: 502 }));
  await expect(answered(client.GET("/v1/training/datasets"))).rejects.toMatchObject({
    status: 502,
    code: "http-502",
  });
});
