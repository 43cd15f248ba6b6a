import { useCallback } from "react";
import { Link, useSearchParams } from "wouter";
import { Asked } from "@/kit/Asked";
import { Empty } from "@/kit/Empty";
import { LongList } from "@/kit/LongList";
import { duration, when } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { ProblemBox } from "@/kit/ProblemBox";
import { jobPath } from "@/routes";
import { type JobKind, type JobListed, type JobStatus, KINDS, STATUSES, useJobs, type Wanted } from "./jobs";
import "./jobs.css";
import { progressText, secondsOf } from "./progress";
import { Status } from "./Status";

/** All jobs, the newest first, and how they stand. */
export default function Jobs() {
  const [search, setSearch] = useSearchParams();
  const wanted = wantedOf(search);
  const jobs = useJobs(wanted);
  const choose = (name: string, value: string) =>
    setSearch((before) => {
      const next = new URLSearchParams(before);
      if (value) next.set(name, value);
      else next.delete(name);
      return next;
    });
  const { hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage } = jobs;
  const onNearEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  return (
    <Page title="Jobs" actions={<StartLink dataset={wanted.dataset} />}>
      <div className="row filters">
        <Choice name="kind" label="Kind" value={wanted.kind ?? ""} of={KINDS} onChoose={choose} />
        <Choice name="status" label="Status" value={wanted.status ?? ""} of={STATUSES} onChoose={choose} />
        {wanted.dataset ? (
          <button type="button" onClick={() => choose("dataset", "")}>
            Only on {wanted.dataset} <span aria-hidden="true">×</span>
            <span className="visually-hidden">: show all datasets</span>
          </button>
        ) : null}
      </div>
      <Asked query={jobs} what="the jobs">
        {({ pages }) => {
          const found = pages.flatMap((page) => page.jobs);
          if (found.length === 0) return <NoJobs wanted={wanted} />;
          return (
            <LongList
              label="Jobs"
              className="jobs-list"
              count={found.length}
              estimate={64}
              keyOf={(index) => found[index]?.id ?? index}
              onNearEnd={onNearEnd}
            >
              {(index) => {
                const job = found[index];
                return job ? <OneJob job={job} /> : null;
              }}
            </LongList>
          );
        }}
      </Asked>
      {isFetchNextPageError ? <ProblemBox error={jobs.error} onRetry={() => void fetchNextPage()} /> : null}
    </Page>
  );
}

function wantedOf(search: URLSearchParams): Wanted {
  const kind = KINDS.find((one) => one === search.get("kind"));
  const status = STATUSES.find((one) => one === search.get("status"));
  const dataset = search.get("dataset");
  return { ...(kind ? { kind } : {}), ...(status ? { status } : {}), ...(dataset ? { dataset } : {}) };
}

function StartLink({ dataset }: { dataset: string | undefined }) {
  const query = dataset ? `?dataset=${encodeURIComponent(dataset)}` : "";
  return (
    <Link href={`/jobs/new${query}`} className="button primary">
      Start a job
    </Link>
  );
}

interface ChoiceProps {
  name: string;
  label: string;
  value: JobKind | JobStatus | "";
  of: readonly string[];
  onChoose: (name: string, value: string) => void;
}

function Choice({ name, label, value, of, onChoose }: ChoiceProps) {
  return (
    <label className="row">
      {label}
      <select value={value} onChange={(event) => onChoose(name, event.target.value)}>
        <option value="">any</option>
        {of.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}

function NoJobs({ wanted }: { wanted: Wanted }) {
  if (Object.keys(wanted).length > 0) return <Empty title="No job is like that." />;
  return (
    <Empty title="There are no jobs yet." command="turnmill job start DATASET --kind prepare --follow">
      <p>Start one above, or on the command line:</p>
    </Empty>
  );
}

function OneJob({ job }: { job: JobListed }) {
  const seconds = secondsOf(job, Date.now());
  return (
    <article className="job-line">
      <Link href={jobPath(job.id)} className="job-name">
        {job.kind} <span className="quiet">of</span> {job.dataset}
      </Link>
      <Status job={job} />
      <span className="quiet job-progress">{job.error ?? progressText(job)}</span>
      <span className="quiet">
        {seconds === null ? "" : `${duration(seconds)} · `}
        <time dateTime={job.created_at}>{when(job.created_at)}</time>
      </span>
    </article>
  );
}
