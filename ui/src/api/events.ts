/** Server-sent events with a token, which the browser's own `EventSource` cannot bring. */
import { EventSourceParserStream } from "eventsource-parser/stream";
import { fetchWithToken } from "./client";
import { problemOf } from "./problem";

export interface ServerEvent {
  /** Its number, which a stream that is opened again goes on from. */
  id: number;
  kind: string;
  data: Record<string, unknown>;
}

/** What is followed, and where it is told. */
export interface Following {
  /** Of the stream, such as `/v1/training/jobs/ID/events`. */
  path: string;
  onEvent: (event: ServerEvent) => void;
  /** The stream broke off and is being opened again (true), or is open (false). */
  onReconnecting: (is: boolean) => void;
  signal: AbortSignal;
}

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

/**
 * Follow a stream to its end, over restarts of the server: each event is told once.
 *
 * @throws ApiProblem where the server refuses for good.
 */
export async function follow({ path, onEvent, onReconnecting, signal }: Following): Promise<void> {
  let last = 0;
  let wait = FIRST_WAIT_MS;
  while (!signal.aborted) {
    try {
      for await (const event of opened(path, last, signal)) {
        if (event === "open") {
          onReconnecting(false);
          continue;
        }
        last = event.id;
        wait = FIRST_WAIT_MS;
        onEvent(event);
      }
      return;
    } catch (error) {
      if (signal.aborted) return;
      if (isRefused(error)) throw error;
      onReconnecting(true);
      await passed(wait, signal);
      wait = Math.min(2 * wait, LONGEST_WAIT_MS);
    }
  }
}

async function* opened(
  path: string,
  last: number,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent | "open"> {
  const request = new Request(new URL(path, window.location.origin), {
    headers: { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": String(last) } : {}) },
    signal,
  });
  const response = await fetchWithToken(request);
  if (!response.ok) throw problemOf(response.status, await response.json().catch(() => null));
  yield "open";
  if (response.body === null) return;
  const events = response.body
    .pipeThrough(new TextDecoderStream())
    .pipeThrough(new EventSourceParserStream());
  const reader = events.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield { id: Number(value.id ?? last), kind: value.event ?? "message", data: JSON.parse(value.data) };
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

function isRefused(error: unknown): boolean {
  const status = (error as { status?: number }).status ?? 0;
  return status >= 400 && status < 500 && status !== 429;
}

function passed(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
