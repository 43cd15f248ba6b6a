import { useMemo } from "react";
import { Link } from "wouter";
import { Asked, Busy } from "@/kit/Asked";
import { Empty } from "@/kit/Empty";
import { Facts } from "@/kit/Facts";
import { whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { ProblemBox } from "@/kit/ProblemBox";
import { usePathPart } from "@/kit/params";
import { datasetPath, jobPath } from "@/routes";
import { JobActions } from "../jobs/JobActions";
import "../jobs/jobs.css";
import { type Job, useJob } from "../jobs/jobs";
import { Stages } from "../jobs/Stages";
import { Status } from "../jobs/Status";
import { useJobEvents } from "../jobs/useJobEvents";
import { Curve } from "./Curve";
import { type Run, runOf } from "./metrics";
import "./training.css";
import { useMetrics } from "./useMetrics";

/** The training that a job does, or did: its losses as they come, and what they come from. */
export default function Training() {
  const id = usePathPart("id");
  return <OneTraining key={id} id={id} />;
}

function OneTraining({ id }: { id: string }) {
  const job = useJob(id);
  const { events, isReconnecting } = useJobEvents(id);
  const metrics = useMetrics(id);
  const tokens = trainedTokens(job.data);
  const run = useMemo(() => runOf(metrics.lines, tokens), [metrics.lines, tokens]);
  return (
    <Page
      title={job.data ? `Training on ${job.data.dataset}` : "Training"}
      actions={job.data ? <JobActions key={job.data.status} job={job.data} /> : null}
    >
      {isReconnecting || metrics.isReconnecting ? (
        <p role="status">Reconnecting: the server does not answer …</p>
      ) : null}
      <Asked query={job} what="the training">
        {(found) =>
          found.kind === "train" ? (
            <>
              <Provenance job={found} run={run} />
              <Stages job={found} events={events} />
              {found.error ? <p className="problem">{found.error}</p> : null}
              {metrics.refused ? <ProblemBox error={metrics.refused} /> : null}
              <Curves run={run} isRead={metrics.isRead} job={found} />
            </>
          ) : (
            <Empty title={`This job is no training: it is of the kind ${found.kind}.`}>
              <Link href={jobPath(id)}>See the job</Link>
            </Empty>
          )
        }
      </Asked>
    </Page>
  );
}

function trainedTokens(job: Job | undefined): number | null {
  const said = job?.progress as { trained_tokens?: number } | undefined;
  return said?.trained_tokens ?? null;
}

const loss = (value: number) => value.toFixed(4);
const rate = (value: number) => value.toExponential(2);

function Curves({ run, isRead, job }: { run: Run; isRead: boolean; job: Job }) {
  if (run.steps.length === 0) {
    if (!isRead) return <Busy what="what was logged" />;
    return (
      <Empty
        title={
          job.status === "running" || job.status === "queued"
            ? "No step was logged yet."
            : "Nothing was logged."
        }
        command={`turnmill job logs ${job.id} --follow --server ${window.location.origin}/v1`}
      />
    );
  }
  const mark = run.best ? { step: run.best.step, name: "best checkpoint" } : null;
  return (
    <div className="curves">
      <Curve title="Loss, nats a token" steps={run.steps} series={run.losses} mark={mark} format={loss} />
      <Curve title="Learning rate" steps={run.steps} series={run.rates} format={rate} />
      <Curve title="Speed" steps={run.steps} series={run.speeds} format={whole} />
    </div>
  );
}

/** What the training is made of, and what came of it. */
function Provenance({ job, run }: { job: Job; run: Run }) {
  const said = job.result as { model?: string };
  const options = Object.entries(job.options).map(([name, value]) => `${name}=${String(value)}`);
  return (
    <Facts
      of={{
        Status: <Status job={job} />,
        Dataset: <Link href={datasetPath(job.dataset)}>{job.dataset}</Link>,
        Version: <code title={job.sha256}>{job.sha256.slice(0, 16)}</code>,
        Model: said.model ?? (job.options.model as string | undefined) ?? "the sidecar's only one",
        Options: <code>{options.join(" ") || "the usual ones"}</code>,
        "Last loss": run.last
          ? `${loss(Number(run.last.loss))} at step ${whole(Number(run.last.step))}`
          : null,
        "Best checkpoint": run.best
          ? `step ${whole(run.best.step)}, held-out loss ${loss(run.best.loss)}`
          : null,
        "Trained tokens": trainedTokens(job) === null ? null : `${whole(trainedTokens(job) ?? 0)} an epoch`,
        Job: <Link href={jobPath(job.id)}>its log and files</Link>,
      }}
    />
  );
}
