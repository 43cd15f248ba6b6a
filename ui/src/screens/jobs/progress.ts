/** How far a job is, from what its worker said. */

import type { ServerEvent } from "@/api/events";
import { duration, whole } from "@/kit/numbers";
import type { JobListed } from "./jobs";

export interface Stage {
  name: string;
  state: "waits" | "works" | "done" | "failed" | "cancelled";
}

const COMMANDS: Record<string, readonly string[]> = {
  prepare: ["prepare"],
  evaluate: ["prepare", "evaluate"],
  audit: ["prepare", "audit"],
  export: ["prepare", "export"],
  train: ["carrying", "preparing", "training"],
};

/** The stages of a job, each with how it stands. */
export function stagesOf(job: Pick<JobListed, "kind" | "status" | "progress">): Stage[] {
  const names = COMMANDS[job.kind] ?? [];
  const at = placeOf(job, names);
  return names.map((name, index) => ({ name, state: stateOf(job.status, index - at) }));
}

const LAST: Record<string, Stage["state"]> = { running: "works", failed: "failed", cancelled: "cancelled" };

/** How a stage stands that lies so many behind the one that a job is at. */
function stateOf(status: string, behind: number): Stage["state"] {
  if (status === "done" || behind < 0) return "done";
  return behind > 0 ? "waits" : (LAST[status] ?? "waits");
}

function placeOf(job: Pick<JobListed, "progress">, names: readonly string[]): number {
  const { task, state } = job.progress as { task?: string; state?: string };
  const name = task ?? (state === "queued" ? "preparing" : state);
  return Math.max(0, name === undefined ? 0 : names.indexOf(name));
}

/** Steps of a training that were done, and how many there will be; null where no training is at them. */
export function stepsOf(job: Pick<JobListed, "progress">): { done: number; of: number } | null {
  const { step, steps } = job.progress as { step?: number; steps?: number };
  return step !== undefined && steps !== undefined && steps > 0 ? { done: step, of: steps } : null;
}

/** How far a job is, in a few words. */
export function progressText(job: Pick<JobListed, "kind" | "status" | "progress">): string {
  if (job.status === "queued") return "waits for a worker";
  if (job.status !== "running") return "";
  const steps = stepsOf(job);
  const said = job.progress as {
    task?: string;
    number?: number;
    of?: number;
    state?: string;
    sidecar?: string;
  };
  const words: string[] = [];
  if (steps) words.push(`step ${whole(steps.done)} of ${whole(steps.of)}`);
  else if (said.task) words.push(`${said.task} (${said.number} of ${said.of})`);
  else if (said.state) words.push(said.state);
  if (said.sidecar === "down") words.push("the sidecar does not answer");
  return words.join(", ") || "begins";
}

/** How long the rest of a training takes at the speed of the steps that were seen; null where that is not known. */
export function timeLeft(events: readonly ServerEvent[]): string | null {
  const told = events
    .filter(({ kind, data }) => kind === "progress" && typeof data.step === "number" && data.step > 0)
    .map(({ data }) => ({
      step: data.step as number,
      of: data.steps as number,
      at: Date.parse(String(data.at)),
    }));
  const last = told.at(-1);
  const first = told.find(({ step, at }) => last && step < last.step && at < last.at);
  if (!first || !last?.of) return null;
  const left = ((last.of - last.step) * (last.at - first.at)) / (last.step - first.step) / 1000;
  return left > 0 ? `about ${duration(left)} left` : null;
}

/** Seconds that a job has worked, or did. */
export function secondsOf(job: Pick<JobListed, "started_at" | "finished_at">, now: number): number | null {
  if (!job.started_at) return null;
  return Math.max(
    0,
    ((job.finished_at ? Date.parse(job.finished_at) : now) - Date.parse(job.started_at)) / 1000,
  );
}
