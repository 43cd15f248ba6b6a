import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked, Busy } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Empty } from "@/kit/Empty";
import { LongList } from "@/kit/LongList";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { datasetPath, jobPath } from "@/routes";
import { useJob } from "../jobs/jobs";
import "./audit.css";
import { Measures } from "./Measures";

const LINE_PIXELS = 220;
const ONLY = {
  exact: "the recorded answer",
  different: "another answer",
  unanswered: "no answer",
} as const;
type Only = keyof typeof ONLY;

/** What a model answers to the questions that it was trained on, beside the recorded answers. */
export default function Audit() {
  const id = usePathPart("id");
  const job = useJob(id);
  const [search, setSearch] = useSearchParams();
  const only = (Object.keys(ONLY) as Only[]).find((one) => one === search.get("only"));
  const contains = search.get("contains") ?? "";
  const found = useAnswers(id, job.data?.status, {
    ...(only ? { only } : {}),
    ...(contains ? { contains } : {}),
  });
  const choose = (name: string, value: string) =>
    setSearch(
      (before) => {
        const next = new URLSearchParams(before);
        if (value) next.set(name, value);
        else next.delete(name);
        return next;
      },
      { replace: name === "contains" },
    );
  const answers = found.data?.pages.flatMap((page) => page.answers) ?? [];
  return (
    <Page
      title={job.data ? `Audit over ${job.data.dataset}` : "Audit"}
      actions={
        <Link href={jobPath(id)} className="button">
          The job
        </Link>
      }
    >
      <Measures result={job.data?.result ?? {}} />
      <div className="row">
        <label className="row">
          Show
          <select value={only ?? ""} onChange={(event) => choose("only", event.target.value)}>
            <option value="">every question</option>
            {Object.entries(ONLY).map(([name, said]) => (
              <option key={name} value={name}>
                {said}
              </option>
            ))}
          </select>
        </label>
        <label className="row">
          With the words
          <input
            type="search"
            maxLength={200}
            value={contains}
            onChange={(event) => choose("contains", event.target.value)}
          />
        </label>
      </div>
      <Asked query={found} what="the answers">
        {() =>
          answers.length === 0 && !found.hasNextPage ? (
            <Empty title="There is no such answer." />
          ) : (
            <LongList
              label="Questions and answers"
              className="answers"
              count={answers.length}
              estimate={LINE_PIXELS}
              onNearEnd={() => found.hasNextPage && !found.isFetching && void found.fetchNextPage()}
            >
              {(place) =>
                answers[place] ? <Answer answer={answers[place]} dataset={job.data?.dataset ?? ""} /> : null
              }
            </LongList>
          )
        }
      </Asked>
      {found.isFetching ? <Busy what="answers" /> : null}
    </Page>
  );
}

interface Wanted {
  only?: Only;
  contains?: string;
}

/** Asked for anew when the job stands otherwise: its answers come when it ends. */
function useAnswers(id: string, status: string | undefined, wanted: Wanted) {
  return useInfiniteQuery({
    queryKey: ["answers", id, status, wanted],
    queryFn: ({ pageParam }) =>
      answered(
        client.GET("/v1/training/jobs/{job_id}/answers", {
          params: { path: { job_id: id }, query: { cursor: pageParam, ...wanted } },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
  });
}

function Answer({ answer, dataset }: { answer: Schemas["AuditAnswer"]; dataset: string }) {
  return (
    <article className="answer">
      <div className="row apart">
        <Link href={datasetPath(dataset, "rows", answer.source_line)}>row {answer.source_line}</Link>
        <span className="row">
          <Score name="exact" value={answer.exact} />
          <Score name="f1" value={answer.f1} />
          <Score name="nll" value={answer.nll} />
          {answer.answer !== null && !answer.ended ? <Badge tone="warn">did not end</Badge> : null}
          {answer.fault ? <Badge tone="bad">{answer.fault}</Badge> : null}
        </span>
      </div>
      <h3>Asked</h3>
      <p className="said">{answer.asked}</p>
      <div className="beside">
        <div>
          <h3>Recorded</h3>
          <p className="said">{answer.recorded}</p>
        </div>
        <div>
          <h3>The model</h3>
          <p className="said">{answer.answer ?? "–"}</p>
        </div>
      </div>
    </article>
  );
}

function Score({ name, value }: { name: string; value: number | null }) {
  return value === null ? null : (
    <span className="quiet">
      {name} {figure(value)}
    </span>
  );
}

function figure(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString("en") : value.toPrecision(3);
}
