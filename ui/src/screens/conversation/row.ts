/** One row of a dataset as the server tells it: as it lies in the file, and as it is read. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { answered, fetchWithToken } from "@/api/client";

export interface ReadMessage {
  role: "system" | "developer" | "user" | "assistant" | "tool";
  text: string;
  channel: "analysis" | "commentary" | "final" | "text" | null;
  name: string | null;
  recipient: string | null;
  weight: number | null;
  /** Index in the recorded list; -1: it stood outside of it. */
  recorded: number;
}

export interface ReadConversation {
  messages: ReadMessage[];
  tools: unknown[];
  template_kwargs: Record<string, unknown>;
  source_id: string | null;
  verbatim: Record<string, string>;
}

export interface Row {
  name: string;
  line: number;
  previous: number | null;
  next: number | null;
  dialect: string;
  raw: string;
  bytes: number;
  truncated: boolean;
  source: string;
  record: Record<string, unknown> | null;
  id: string | null;
  code: string | null;
  error: string | null;
  at: number | null;
  stage: string | null;
  repairs: string[];
  conversation: ReadConversation | null;
}

export function useRow(name: string, line: number): UseQueryResult<Row> {
  return useQuery({
    queryKey: ["datasets", name, "rows", line],
    queryFn: ({ signal }) =>
      asked<Row>(`/v1/training/datasets/by-name/${encodeURIComponent(name)}/rows/${line}`, signal),
    enabled: Number.isInteger(line) && line > 0,
  });
}

/** The JSON of a route. */
export async function asked<T>(path: string, signal: AbortSignal): Promise<T> {
  const response = await fetchWithToken(new Request(new URL(path, window.location.origin), { signal }));
  const body: unknown = await response.json().catch(() => null);
  return answered(Promise.resolve(response.ok ? { data: body as T, response } : { error: body, response }));
}
