import { useState } from "react";
import { useLocation } from "wouter";
import { Confirm } from "@/kit/Dialog";
import { ProblemBox } from "@/kit/ProblemBox";
import { jobPath } from "@/routes";
import { isEnded, type Job, newKey, useCancel, useRetry } from "./jobs";

/** What can be done with a job: end it, or start it once more. */
export function JobActions({ job }: { job: Job }) {
  const [isAsking, setAsking] = useState(false);
  const [key] = useState(newKey);
  const [, navigate] = useLocation();
  const cancel = useCancel(job.id);
  const retry = useRetry(job.id);
  const end = () => {
    setAsking(false);
    cancel.mutate();
  };
  const again = () => retry.mutate(key, { onSuccess: (made) => navigate(jobPath(made.id)) });
  return (
    <>
      <div className="row">
        {isEnded(job) ? (
          <button type="button" onClick={again} disabled={retry.isPending}>
            Start it again
          </button>
        ) : (
          <button
            type="button"
            className="danger"
            onClick={() => setAsking(true)}
            disabled={job.cancel_requested || cancel.isPending}
          >
            {job.cancel_requested ? "It is being ended" : "Cancel"}
          </button>
        )}
      </div>
      {cancel.error ? <ProblemBox error={cancel.error} onRetry={() => cancel.mutate()} /> : null}
      {retry.error ? <ProblemBox error={retry.error} onRetry={again} /> : null}
      <Confirm
        title={`Cancel the ${job.kind} job of ${job.dataset}?`}
        isOpen={isAsking && !isEnded(job)}
        action="Cancel the job"
        onConfirm={end}
        onClose={() => setAsking(false)}
      >
        <p>
          What it has done so far is thrown away, but for finished steps, which the next job over the same
          rows takes up.
        </p>
      </Confirm>
    </>
  );
}
