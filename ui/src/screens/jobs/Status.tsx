import { Badge, type Tone } from "@/kit/Badge";
import type { JobListed } from "./jobs";

const TONES: Record<string, Tone> = { done: "good", failed: "bad", cancelled: "warn" };

/** How a job stands, in a word. */
export function Status({ job }: { job: Pick<JobListed, "status" | "cancel_requested"> }) {
  const isEnding = job.status === "running" && job.cancel_requested;
  return <Badge tone={TONES[job.status] ?? "neutral"}>{isEnding ? "ending" : job.status}</Badge>;
}
