import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemBox } from "./ProblemBox";

interface AskedProps<T> {
  query: UseQueryResult<T>;
  /** What is being fetched, such as "the datasets". */
  what: string;
  children: (data: T) => ReactNode;
}

/**
 * What a query has to show: that it waits, what went wrong, or its data. Data that is there stays when the
 * next look fails, with the problem above it.
 */
export function Asked<T>({ query, what, children }: AskedProps<T>) {
  const { data, error, refetch } = query;
  return (
    <>
      {error ? <ProblemBox error={error} onRetry={() => void refetch()} /> : null}
      {data !== undefined ? children(data) : error ? null : <Busy what={what} />}
    </>
  );
}

export function Busy({ what }: { what: string }) {
  return (
    <p className="busy" role="status">
      Reading {what} …
    </p>
  );
}
