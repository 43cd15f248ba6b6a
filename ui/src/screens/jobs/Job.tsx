import { useEffect, useState } from "react";
import { Link } from "wouter";
import { Asked } from "@/kit/Asked";
import { Facts } from "@/kit/Facts";
import { duration, when } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { datasetPath, jobPath } from "@/routes";
import { Files } from "./Files";
import { JobActions } from "./JobActions";
import { JobLog } from "./JobLog";
import { isEnded, type Job as JobData, useJob } from "./jobs";
import "./jobs.css";
import { Manifest } from "./Manifest";
import { secondsOf } from "./progress";
import { Result } from "./Result";
import { Selection } from "./Selection";
import { Stages } from "./Stages";
import { Status } from "./Status";
import { useJobEvents } from "./useJobEvents";

/** One job: how it stands, what it says, and what came of it. */
export default function Job() {
  const id = usePathPart("id");
  return <OneJob key={id} id={id} />;
}

function OneJob({ id }: { id: string }) {
  const job = useJob(id);
  const { events, isReconnecting } = useJobEvents(id);
  const { data } = job;
  return (
    <Page
      title={data ? `${data.kind} of ${data.dataset}` : "Job"}
      actions={data ? <JobActions key={data.status} job={data} /> : null}
    >
      {isReconnecting ? <p role="status">Reconnecting: the server does not answer …</p> : null}
      <Asked query={job} what="the job">
        {(found) => (
          <>
            <JobFacts job={found} />
            <Places job={found} />
            <Stages job={found} events={events} />
            {found.error ? (
              <section className="problem" aria-label="What went wrong">
                <h2>What went wrong</h2>
                <p>{found.error}</p>
              </section>
            ) : null}
            {isEnded(found) ? <Result result={found.result} /> : null}
            <Manifest id={id} isEnded={isEnded(found)} />
            {found.status === "done" && typeof found.options.strategy === "string" ? (
              <Selection id={id} strategy={found.options.strategy} />
            ) : null}
            <JobLog id={id} />
            {isEnded(found) ? <Files id={id} /> : null}
          </>
        )}
      </Asked>
    </Page>
  );
}

function JobFacts({ job }: { job: JobData }) {
  const now = useNow(!isEnded(job));
  const seconds = secondsOf(job, now);
  return (
    <Facts
      of={{
        Status: <Status job={job} />,
        Dataset: <Link href={datasetPath(job.dataset)}>{job.dataset}</Link>,
        Version: <code title={job.sha256}>{job.sha256.slice(0, 16)}</code>,
        Options: <Options of={job.options} />,
        Made: <time dateTime={job.created_at}>{when(job.created_at)}</time>,
        Worked: seconds === null ? null : duration(seconds),
        Attempt: job.attempt > 1 ? `${job.attempt}: workers were lost before` : null,
        Id: <code>{job.id}</code>,
      }}
    />
  );
}

function Options({ of }: { of: Record<string, unknown> }) {
  const told = Object.entries(of).map(([name, value]) => `${name}=${String(value)}`);
  return told.length > 0 ? <code>{told.join(" ")}</code> : "the usual ones";
}

/** The screens of a job's kind. */
function Places({ job }: { job: JobData }) {
  const parts = {
    train: [["training", "Loss, learning rate, provenance"]],
    audit: [
      ["audit", "Questions and answers"],
      ["quarantine", "Rows that left"],
    ],
  }[job.kind] ?? [["quarantine", "Rows that left"]];
  return (
    <nav className="row" aria-label="Of this job">
      {parts.map(([part = "", title]) => (
        <Link key={part} href={jobPath(job.id, part)} className="button">
          {title}
        </Link>
      ))}
    </nav>
  );
}

/** The time, every second while something counts on it. */
function useNow(isCounting: boolean): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!isCounting) return;
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, [isCounting]);
  return now;
}
