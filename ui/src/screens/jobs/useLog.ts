/** What a job's commands said, from the first byte on, as it comes. */
import { useEffect, useState } from "react";
import { answered, client } from "@/api/client";
import { asProblem } from "@/api/problem";
import { useSession } from "@/api/session";

export interface Log {
  text: string;
  /** Whether its beginning was left out. */
  isCut: boolean;
  /** Whether the job has ended and nothing comes behind this. */
  isWhole: boolean;
  isReconnecting: boolean;
}

const LOOK_MS = 1_000;
/** Characters that are shown: a browser lays out no more of them in time. */
export const SHOWN = 200_000;
const NOTHING: Log = { text: "", isCut: false, isWhole: false, isReconnecting: false };

export function useLog(id: string): Log {
  const { token } = useSession();
  const [log, setLog] = useState(NOTHING);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another token reads on
  useEffect(() => {
    const stop = new AbortController();
    setLog(NOTHING);
    void read(id, stop.signal, setLog);
    return () => stop.abort();
  }, [id, token]);
  return log;
}

type Change = (change: (before: Log) => Log) => void;

async function read(id: string, signal: AbortSignal, change: Change): Promise<void> {
  let offset = 0;
  while (!signal.aborted) {
    let isAhead = false;
    try {
      const params = { path: { job_id: id }, query: { offset } };
      const piece = await answered(client.GET("/v1/training/jobs/{job_id}/log", { params, signal }));
      if (signal.aborted) return;
      isAhead = piece.text !== "";
      offset = piece.next_offset;
      change((before) => ({ ...added(before, piece.text), isWhole: piece.is_whole, isReconnecting: false }));
      if (piece.is_whole) return;
    } catch (error) {
      if (signal.aborted || !asProblem(error).isPassing) return; // the job itself says what was refused
      change((before) => ({ ...before, isReconnecting: true }));
    }
    if (!isAhead) await new Promise((passed) => setTimeout(passed, LOOK_MS));
  }
}

function added(before: Log, text: string): Log {
  const all = before.text + text;
  return all.length <= SHOWN
    ? { ...before, text: all }
    : { ...before, text: all.slice(all.indexOf("\n", all.length - SHOWN) + 1), isCut: true };
}
