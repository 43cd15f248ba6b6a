/** What a training logs, as it logs it. */
import { useEffect, useState } from "react";
import { answered, client, type Schemas } from "@/api/client";
import { type ApiProblem, asProblem } from "@/api/problem";
import { useSession } from "@/api/session";
import { type Line, merged } from "./metrics";

export interface Metrics {
  lines: readonly Line[];
  /** Whether all that is there now was read at least once. */
  isRead: boolean;
  isReconnecting: boolean;
  /** What the server refused. */
  refused: ApiProblem | null;
}

const LOOK_MS = 2_000;
const NOTHING: Metrics = { lines: [], isRead: false, isReconnecting: false, refused: null };

export function useMetrics(id: string): Metrics {
  const { token } = useSession();
  const [metrics, setMetrics] = useState(NOTHING);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another token reads on
  useEffect(() => {
    const stop = new AbortController();
    void read(id, stop.signal, setMetrics);
    return () => stop.abort();
  }, [id, token]);
  return metrics;
}

type Change = (change: (before: Metrics) => Metrics) => void;

async function read(id: string, signal: AbortSignal, change: Change): Promise<void> {
  let after = -1;
  while (!signal.aborted) {
    try {
      const params = { path: { job_id: id }, query: { after } };
      const part = await answered(client.GET("/v1/training/jobs/{job_id}/metrics", { params, signal }));
      if (signal.aborted) return;
      change((before) => withPart(before, part));
      if (part.is_whole) return;
      const last = Number(part.metrics.at(-1)?.step ?? after);
      after = part.next ?? Math.max(after, last - 1); // the last step's lines can become more
      if (part.next !== null) continue;
    } catch (error) {
      if (signal.aborted) return;
      const problem = asProblem(error);
      change((before) => withProblem(before, problem));
      if (!problem.isPassing) return;
    }
    await new Promise((passed) => setTimeout(passed, LOOK_MS));
  }
}

function withPart(before: Metrics, part: Schemas["JobMetrics"]): Metrics {
  return {
    lines: part.metrics.length > 0 ? merged(before.lines, part.metrics) : before.lines,
    isRead: before.isRead || part.next === null,
    isReconnecting: false,
    refused: null,
  };
}

function withProblem(before: Metrics, problem: ApiProblem): Metrics {
  return { ...before, isReconnecting: problem.isPassing, refused: problem.isPassing ? null : problem };
}
