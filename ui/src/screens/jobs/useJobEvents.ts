/** What happens to a job, as it happens: over restarts of the server, and over tokens that have expired. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { follow, type ServerEvent } from "@/api/events";
import { useSession } from "@/api/session";
import { isEnded, jobQuery } from "./jobs";

export interface JobEvents {
  events: readonly ServerEvent[];
  isReconnecting: boolean;
}

const AGAIN_MS = 1_000;

/** Events of a job; with each of them the job itself is looked at again. */
export function useJobEvents(id: string): JobEvents {
  const queries = useQueryClient();
  const { token } = useSession();
  const [events, setEvents] = useState<readonly ServerEvent[]>([]);
  const [isReconnecting, setReconnecting] = useState(false);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another token opens the stream again
  useEffect(() => {
    const stop = new AbortController();
    setEvents([]);
    const onEvent = (event: ServerEvent) => {
      setEvents((before) =>
        before.some(({ id: known }) => known === event.id) ? before : [...before, event],
      );
      void queries.invalidateQueries({ queryKey: ["job", id] });
    };
    void watch(id, queries, { onEvent, onReconnecting: setReconnecting, signal: stop.signal });
    return () => stop.abort();
  }, [id, queries, token]);
  return { events, isReconnecting };
}

interface Told {
  onEvent: (event: ServerEvent) => void;
  onReconnecting: (is: boolean) => void;
  signal: AbortSignal;
}

/** Follow until the job has ended, or the server refuses: a stream can also end with the server that sent it. */
async function watch(id: string, queries: QueryClient, told: Told): Promise<void> {
  while (!told.signal.aborted) {
    try {
      await follow({ path: `/v1/training/jobs/${id}/events`, ...told });
    } catch {
      return; // the job's own query says what was refused
    }
    if (told.signal.aborted) return;
    try {
      const job = await queries.fetchQuery({ ...jobQuery(id), staleTime: 0 });
      if (isEnded(job)) return;
    } catch (error) {
      if ((error as { isPassing?: boolean }).isPassing !== true) return;
      told.onReconnecting(true);
    }
    await new Promise((passed) => setTimeout(passed, AGAIN_MS));
  }
}
