import { useCallback, useEffect } from "react";
import { Link } from "wouter";
import { asProblem } from "@/api/problem";
import { Busy } from "@/kit/Asked";
import { Badge } from "@/kit/Badge";
import { Empty } from "@/kit/Empty";
import { LongList } from "@/kit/LongList";
import { whole } from "@/kit/numbers";
import { ProblemBox } from "@/kit/ProblemBox";
import { datasetPath } from "@/routes";
import { type Filters, type RowSummary, useRows } from "./rows";

const LINE_PIXELS = 58;

/** The rows that are asked for, read on as somebody scrolls. */
export function RowList({ name, filters }: { name: string; filters: Filters }) {
  const query = useRows(name, filters);
  const { data, error, hasNextPage, isFetching, fetchNextPage, refetch } = query;
  const rows = data?.pages.flatMap((page) => page.rows) ?? [];
  const scanned = data?.pages.reduce((sum, page) => sum + page.scanned, 0) ?? 0;
  const more = useCallback(() => {
    if (hasNextPage && !isFetching && !error) void fetchNextPage();
  }, [hasNextPage, isFetching, error, fetchNextPage]);
  useEffect(() => {
    if (rows.length === 0) more(); // a page can be at its end before it has found anything
  }, [rows.length, more]);
  const isStale = error !== null && asProblem(error).code === "dataset-changed";
  return (
    <>
      {error ? (
        <ProblemBox error={error} onRetry={() => void (isStale ? refetch() : fetchNextPage())} />
      ) : null}
      <p role="status" className="quiet">
        {whole(rows.length)} found in the first {whole(scanned)} rows
        {hasNextPage ? "; scroll for more" : ", which are all"}.
      </p>
      {rows.length > 0 ? (
        <LongList
          label="Rows"
          className="row-list"
          count={rows.length}
          estimate={LINE_PIXELS}
          keyOf={(place) => rows[place]?.line ?? place}
          onNearEnd={more}
        >
          {(place) => (rows[place] ? <RowLine name={name} row={rows[place]} /> : null)}
        </LongList>
      ) : null}
      {isFetching ? <Busy what="rows" /> : null}
      {!isFetching && !error && rows.length === 0 ? (
        <Empty title="No row is like that.">
          <p>Lift a filter above to see more of them.</p>
        </Empty>
      ) : null}
    </>
  );
}

function RowLine({ name, row }: { name: string; row: RowSummary }) {
  return (
    <div className="row-line">
      <Link href={datasetPath(name, "rows", row.line)}>
        row {row.line}
        <span className="visually-hidden">: {row.excerpt}</span>
      </Link>
      <span className="excerpt">{row.excerpt || "–"}</span>
      <span className="marks">
        {row.code ? <Badge tone="bad">{row.code}</Badge> : null}
        {row.has_reasoning ? <Badge>reasoning</Badge> : null}
        {row.has_tool_calls ? <Badge>calls</Badge> : null}
        <span className="quiet">
          {row.turns === null
            ? "no conversation"
            : `${whole(row.turns)} turns, ${whole(row.characters ?? 0)} characters`}
        </span>
      </span>
    </div>
  );
}
