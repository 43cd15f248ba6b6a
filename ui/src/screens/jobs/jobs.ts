/** What is asked of the server about jobs. */
import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";

export type Job = Schemas["JobSaid"];
export type JobListed = Schemas["JobListed"];
export type JobKind = "prepare" | "train" | "evaluate" | "audit" | "export";
export type JobStatus = "queued" | "running" | "done" | "failed" | "cancelled";

export const KINDS: readonly JobKind[] = ["prepare", "train", "evaluate", "audit", "export"];
export const STATUSES: readonly JobStatus[] = ["queued", "running", "done", "failed", "cancelled"];

const PAGE = 50;
const LOOK_MS = 2_000;
const MANY_PAGES = 3;

export function isEnded(job: Pick<JobListed, "status">): boolean {
  return job.status === "done" || job.status === "failed" || job.status === "cancelled";
}

export interface Wanted {
  kind?: JobKind;
  status?: JobStatus;
  dataset?: string;
}

/** Jobs, the newest first, page by page; looked at again and again while one of them has not ended. */
export function useJobs(wanted: Wanted = {}) {
  return useInfiniteQuery({
    queryKey: ["jobs", wanted],
    queryFn: ({ pageParam }) =>
      answered(
        client.GET("/v1/training/jobs", {
          params: { query: { ...wanted, limit: PAGE, ...(pageParam ? { before: pageParam } : {}) } },
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: ({ state }) => {
      const pages = state.data?.pages ?? [];
      if (pages.length > MANY_PAGES) return false; // whoever reads old jobs does not wait for new ones
      const isLive = pages.some((page) => page.jobs.some((job) => !isEnded(job)));
      return isLive ? LOOK_MS : 5 * LOOK_MS;
    },
  });
}

export function jobQuery(id: string) {
  return {
    queryKey: ["job", id],
    queryFn: () => answered(client.GET("/v1/training/jobs/{job_id}", { params: { path: { job_id: id } } })),
  };
}

export function useJob(id: string) {
  return useQuery(jobQuery(id));
}

/** Asks for the end of a job; one that has ended meanwhile stays as it is. */
export function useCancel(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      answered(client.POST("/v1/training/jobs/{job_id}/cancel", { params: { path: { job_id: id } } })),
    onSuccess: (job) => {
      queries.setQueryData(["job", id], job);
      void queries.invalidateQueries({ queryKey: ["jobs"] });
    },
  });
}

/** Starts a job with the options of another one; asked twice with one key, it is one job. */
export function useRetry(id: string) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (key: string) =>
      answered(
        client.POST("/v1/training/jobs/{job_id}/retry", {
          params: { path: { job_id: id }, header: { "idempotency-key": key } },
        }),
      ),
    onSuccess: () => void queries.invalidateQueries({ queryKey: ["jobs"] }),
  });
}

/** What makes a request that is sent again the same one. */
export function newKey(): string {
  const random = crypto.getRandomValues(new Uint8Array(16)); // `randomUUID` is missing where there is no TLS
  return Array.from(random, (value) => value.toString(16).padStart(2, "0")).join("");
}
