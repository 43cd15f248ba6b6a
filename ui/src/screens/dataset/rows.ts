/** The rows of a dataset that are asked for, page by page; what is asked for stands in the address. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useSearchParams } from "wouter";
import { answered, client, type Schemas } from "@/api/client";

export type RowSummary = Schemas["RowSummary"];
export type Profile = Schemas["DatasetProfile"];

/** What rows can be asked for by, as the interface names it. */
export const FILTERS = [
  "q",
  "code",
  "source",
  "role",
  "min_turns",
  "max_turns",
  "min_characters",
  "max_characters",
  "reasoning",
  "calls",
  "tools",
] as const;
export type Filter = (typeof FILTERS)[number];
export type Filters = Partial<Record<Filter, string>>;

/** The filters of the address, and what changes some of them; an empty one is taken out. */
export function useFilters(): [Filters, (change: Filters) => void] {
  const [search, setSearch] = useSearchParams();
  const filters = useMemo(() => {
    const said = FILTERS.map((name) => [name, search.get(name)] as const);
    return Object.fromEntries(said.filter(([, value]) => value)) as Filters;
  }, [search]);
  const change = (what: Filters) =>
    setSearch((before) => {
      const next = new URLSearchParams(before);
      for (const [name, value] of Object.entries(what)) {
        if (value) next.set(name, value);
        else next.delete(name);
      }
      return next;
    });
  return [filters, change];
}

export function useDataset(name: string) {
  const path = { params: { path: { name } } };
  return useQuery({
    queryKey: ["dataset", name],
    queryFn: () => answered(client.GET("/v1/training/datasets/by-name/{name}", path)),
  });
}

export function useProfile(name: string) {
  const path = { params: { path: { name } } };
  return useQuery({
    queryKey: ["profile", name],
    queryFn: () => answered(client.GET("/v1/training/datasets/by-name/{name}/profile", path)),
    staleTime: 60_000,
  });
}

/** Rows as far as somebody has read; a page that found nothing yet is read on from by itself. */
export function useRows(name: string, filters: Filters) {
  return useInfiniteQuery({
    queryKey: ["rows", name, filters],
    queryFn: ({ pageParam, signal }) =>
      answered(
        client.GET("/v1/training/datasets/by-name/{name}/rows", {
          params: {
            path: { name },
            query: { ...(filters as object), limit: 100, ...(pageParam ? { cursor: pageParam } : {}) },
          },
          signal,
        }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next ?? undefined,
    staleTime: 60_000,
  });
}
