import { useInfiniteQuery, useMutation } from "@tanstack/react-query";
import { Link, useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";
import { Asked, Busy } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Command } from "@/kit/Command";
import { Empty } from "@/kit/Empty";
import { LongList } from "@/kit/LongList";
import { whole } from "@/kit/numbers";
import { Page } from "@/kit/Page";
import { usePathPart } from "@/kit/params";
import { jobPath } from "@/routes";
import "../dataset/dataset.css";
import { Moves } from "./Moves";
import "./quarantine.css";
import { usePlugins } from "@/api/usePlugins";
import { type Reason, Reasons } from "./Reasons";
import { ReplayForm } from "./ReplayForm";

const LINE_PIXELS = 110;

/** The rows that left in a job: why, which, and what would mend them. */
export default function JobQuarantine() {
  const id = usePathPart("id");
  const [search, setSearch] = useSearchParams();
  const code = search.get("code") ?? "";
  const left = useLeft(id, code);
  const rows = left.data?.pages.flatMap((page) => page.rows) ?? [];
  return (
    <Page
      title="Rows that left"
      actions={
        <Link href={jobPath(id)} className="button">
          The job
        </Link>
      }
    >
      <Asked query={left} what="the rows that left">
        {({ pages }) =>
          (pages[0]?.reasons.length ?? 0) === 0 ? (
            <Empty title="No row left in this job." />
          ) : (
            <div className="quarantine">
              <div className="stack">
                <Reasons
                  reasons={joined(pages[0]?.reasons ?? [])}
                  chosen={code}
                  onChoose={(next) => setSearch(next ? { code: next } : {})}
                />
                <JobReplay id={id} code={code} />
              </div>
              <div>
                <LongList
                  label="Rows that left"
                  className="row-list"
                  count={rows.length}
                  estimate={LINE_PIXELS}
                  keyOf={(place) => rows[place]?.number ?? place}
                  onNearEnd={() => left.hasNextPage && !left.isFetching && void left.fetchNextPage()}
                >
                  {(place) => (rows[place] ? <LeftRow row={rows[place]} /> : null)}
                </LongList>
                {left.isFetching ? <Busy what="rows" /> : null}
              </div>
            </div>
          )
        }
      </Asked>
    </Page>
  );
}

function useLeft(id: string, code: string) {
  return useInfiniteQuery({
    queryKey: ["left", id, code],
    queryFn: ({ pageParam }) =>
      answered(
        client.GET("/v1/training/jobs/{job_id}/quarantine", {
          params: { path: { job_id: id }, query: { cursor: pageParam, ...(code ? { code } : {}) } },
        }),
      ),
    initialPageParam: 0,
    getNextPageParam: (page) => page.next ?? undefined,
  });
}

/** The reasons of all sources together, code by code. */
function joined(reasons: readonly Schemas["LeftReason"][]): Reason[] {
  const found = new Map<string, Reason>();
  for (const reason of reasons) {
    const key = `${reason.class} ${reason.code}`;
    const before = found.get(key);
    found.set(key, { ...reason, rows: reason.rows + (before?.rows ?? 0) });
  }
  return [...found.values()];
}

function LeftRow({ row }: { row: Schemas["LeftRow"] }) {
  return (
    <article className="left-row">
      <div className="row apart">
        <strong>
          {row.source_file}:{row.source_line}
        </strong>
        <Badge tone={row.class === "rejected" ? "bad" : "warn"}>{row.code}</Badge>
      </div>
      <p>
        {row.message}
        {row.at === null ? null : <span className="quiet"> (message {row.at})</span>}
      </p>
      <pre>
        {row.excerpt}
        {row.is_whole ? null : " …"}
      </pre>
    </article>
  );
}

function JobReplay({ id, code }: { id: string; code: string }) {
  const repairs = usePlugins("repairs");
  const replay = useMutation({
    mutationFn: (chosen: string[]) =>
      answered(
        client.POST("/v1/training/jobs/{job_id}/quarantine/replay", {
          params: { path: { job_id: id } },
          body: { repairs: chosen, ...(code ? { code } : {}) },
        }),
      ),
  });
  return (
    <ReplayForm
      repairs={repairs}
      dialects={null}
      isBusy={replay.isPending}
      error={replay.error}
      onReplay={(chosen) => replay.mutate(chosen)}
    >
      {replay.data ? (
        <div role="status">
          <p>
            {whole(replay.data.passes)} of {whole(replay.data.rows)} rows would pass
            {replay.data.complete ? "." : ", of those that could be looked at in time."}
          </p>
          <Moves moves={replay.data.counts} />
          <p>This writes them, as a further source:</p>
          <Command text={replay.data.command} />
        </div>
      ) : null}
    </ReplayForm>
  );
}
