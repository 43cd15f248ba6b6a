import type { ServerEvent } from "@/api/events";
import type { Job } from "./jobs";
import { progressText, type Stage, stagesOf, stepsOf, timeLeft } from "./progress";

const SIGNS: Record<Stage["state"], string> = {
  waits: "○",
  works: "◐",
  done: "●",
  failed: "✕",
  cancelled: "–",
};

interface StagesProps {
  job: Job;
  events: readonly ServerEvent[];
}

/** The stages of a job, the one that it is at, and how much of it is left. */
export function Stages({ job, events }: StagesProps) {
  const steps = stepsOf(job);
  const isRunning = job.status === "running";
  const left = isRunning ? timeLeft(events) : null;
  return (
    <section aria-label="Progress">
      <ol className="stages">
        {stagesOf(job).map(({ name, state }) => (
          <li key={name} className={`stage ${state}`} aria-current={state === "works" ? "step" : undefined}>
            <span aria-hidden="true">{SIGNS[state]}</span> {name} <small>{state}</small>
          </li>
        ))}
      </ol>
      {steps && isRunning ? <progress aria-label="Steps" value={steps.done} max={steps.of} /> : null}
      <p role="status" className="quiet">
        {[progressText(job), left].filter(Boolean).join(", ")}
      </p>
    </section>
  );
}
