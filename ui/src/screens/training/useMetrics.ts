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

/** Read on until the training has ended and all of it was read, or the server refuses. */
async function read(id: string, signal: AbortSignal, change: Change): Promise<void> {
  let after: number | null = -1;
  while (after !== null && !signal.aborted) {
    try {
      after = await readPart(id, after, signal, change);
    } catch (error) {
      if (signal.aborted) return;
      const problem = asProblem(error);
      change((before) => withProblem(before, problem));
      if (!problem.isPassing) return;
      await passed(LOOK_MS);
    }
  }
}

/** Reads what is behind a step; gives the step to read on from, null where nothing will come. */
async function readPart(
  id: string,
  after: number,
  signal: AbortSignal,
  change: Change,
): Promise<number | null> {
  const params = { path: { job_id: id }, query: { after } };
  const part = await answered(client.GET("/v1/training/jobs/{job_id}/metrics", { params, signal }));
  if (signal.aborted) return null;
  change((before) => withPart(before, part));
  if (part.is_whole) return null;
  if (part.next !== null) return part.next;
  await passed(LOOK_MS);
  const last = Number(part.metrics.at(-1)?.step ?? after);
  return Math.max(after, last - 1); // the last step's lines can become more
}

function passed(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
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
