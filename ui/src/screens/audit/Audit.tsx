import { useInfiniteQuery } from "@tanstack/react-query";
import { useCallback } from "react";
import { useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Empty } from "@/kit/Empty";
import { LongList } from "@/kit/LongList";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { useJob } from "../jobs/jobs";
import "./audit.css";
import { Measures } from "./Measures";

type Answer = Schemas["AuditAnswer"];
const ONLY = ["exact", "different", "unanswered"] as const;

/** The questions of an audit: the answer that was recorded beside the model's, and how near they are. */
export default function Audit() {
  const id = usePathPart("id");
  const job = useJob(id);
  const [search, setSearch] = useSearchParams();
  const only = ONLY.find((one) => one === search.get("only"));
  const contains = search.get("contains") ?? "";
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
  return (
    <Page title={job.data ? `Audit on ${job.data.dataset}` : "Audit"}>
      <Asked query={job} what="the audit">
        {(found) => (
          <>
            <Measures result={found.result} />
            <div className="row">
              <label>
                Answers{" "}
                <select value={only ?? ""} onChange={(event) => choose("only", event.target.value)}>
                  <option value="">all</option>
                  {ONLY.map((one) => (
                    <option key={one}>{one}</option>
                  ))}
                </select>
              </label>
              <label>
                With the words{" "}
                <input
                  type="search"
                  maxLength={200}
                  value={contains}
                  onChange={(event) => choose("contains", event.target.value)}
                />
              </label>
            </div>
            <Answers id={id} status={found.status} only={only} contains={contains} />
          </>
        )}
      </Asked>
    </Page>
  );
}

interface AnswersProps {
  id: string;
  status: string;
  only: (typeof ONLY)[number] | undefined;
  contains: string;
}

function Answers({ id, status, only, contains }: AnswersProps) {
  const query = { ...(only ? { only } : {}), ...(contains ? { contains } : {}) };
  const answers = useInfiniteQuery({
    queryKey: ["job", id, "answers", status, query],
    queryFn: ({ pageParam }) =>
      answered(
        client.GET("/v1/training/jobs/{job_id}/answers", {
          params: { path: { job_id: id }, query: { ...query, cursor: pageParam } },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const { hasNextPage, isFetching, isError, fetchNextPage } = answers;
  const onNearEnd = useCallback(() => {
    if (hasNextPage && !isFetching && !isError) void fetchNextPage();
  }, [hasNextPage, isFetching, isError, fetchNextPage]);
  return (
    <Asked query={answers} what="the answers">
      {({ pages }) => {
        const found = pages.flatMap((page) => page.answers);
        if (found.length === 0 && hasNextPage) {
          return (
            <button type="button" onClick={() => void fetchNextPage()} disabled={isFetching}>
              None so far: look on
            </button>
          );
        }
        if (found.length === 0) return <Empty title="No answer is like that." />;
        return (
          <LongList
            label="Answers"
            className="answers"
            count={found.length}
            estimate={150}
            onNearEnd={onNearEnd}
          >
            {(index) => {
              const answer = found[index];
              return answer ? <OneAnswer answer={answer} /> : null;
            }}
          </LongList>
        );
      }}
    </Asked>
  );
}

function OneAnswer({ answer }: { answer: Answer }) {
  return (
    <article className="answer">
      <p className="asked">{answer.asked}</p>
      <div className="beside">
        <div>
          <h3>Recorded</h3>
          <p>{answer.recorded}</p>
        </div>
        <div>
          <h3>The model</h3>
          <p>{answer.answer ?? <em>no answer: {answer.fault}</em>}</p>
        </div>
      </div>
      <p className="row quiet">
        <Verdict answer={answer} />
        {answer.f1 === null ? null : <span>F1 {answer.f1.toFixed(2)}</span>}
        {answer.nll === null ? null : <span>{answer.nll.toFixed(3)} nats a token</span>}
        <span>
          {answer.source}, {answer.source_file}:{answer.source_line}
        </span>
      </p>
    </article>
  );
}

function Verdict({ answer }: { answer: Answer }) {
  if (answer.fault !== null) return <Badge tone="bad">unanswered</Badge>;
  return answer.exact === 1 ? <Badge tone="good">exact</Badge> : <Badge tone="warn">different</Badge>;
}
