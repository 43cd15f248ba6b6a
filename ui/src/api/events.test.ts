import { afterEach, expect, test, vi } from "vitest";
import { follow, type ServerEvent } from "./events";

afterEach(() => vi.unstubAllGlobals());

function streamed(text: string, breaks = false): Response {
  const body = new ReadableStream({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(text));
      if (breaks) setTimeout(() => controller.error(new TypeError("network error")));
      else controller.close();
    },
  });
  return new Response(body, { headers: { "Content-Type": "text/event-stream" } });
}

function told() {
  const events: ServerEvent[] = [];
  const reconnecting: boolean[] = [];
  const signal = new AbortController().signal;
  const all = { path: "/v1/training/jobs/1/events", signal };
  const following = {
    ...all,
    onEvent: (event: ServerEvent) => events.push(event),
    onReconnecting: (is: boolean) => reconnecting.push(is),
  };
  return { events, reconnecting, following };
}

test("events are told in order, to the end of the stream", async () => {
  vi.stubGlobal("fetch", async () =>
    streamed('id: 1\nevent: queued\ndata: {"a": 1}\n\nid: 2\nevent: done\ndata: {}\n\n'),
  );
  const { events, following } = told();
  await follow(following);
  expect(events).toEqual([
    { id: 1, kind: "queued", data: { a: 1 } },
    { id: 2, kind: "done", data: {} },
  ]);
});

test("a stream that breaks is opened again behind its last event", async () => {
  const answers = [streamed("id: 1\ndata: {}\n\n", true), streamed("id: 2\ndata: {}\n\n")];
  const asked = vi.fn(async (_request: Request) => answers.shift() as Response);
  vi.stubGlobal("fetch", asked);
  const { events, reconnecting, following } = told();
  await follow(following);
  expect(events.map((event) => event.id)).toEqual([1, 2]);
  expect(asked.mock.calls[1]?.[0].headers.get("Last-Event-ID")).toBe("1");
  expect(reconnecting).toEqual([false, true, false]);
});

test("a refusal ends it", async () => {
  vi.stubGlobal("fetch", async () =>
    Response.json({ code: "job-unknown", detail: "no such job" }, { status: 404 }),
  );
  await expect(follow(told().following)).rejects.toMatchObject({ code: "job-unknown" });
});
