/** What a request can name: the models of the server, and turnmill's own templates. */
import { useQuery } from "@tanstack/react-query";
import { answered, client } from "@/api/client";

export interface Named {
  models: readonly string[];
  templates: readonly string[];
}

const NEVER = Number.POSITIVE_INFINITY;

export function useAbout(): Named | undefined {
  const about = useQuery({
    queryKey: ["about"],
    queryFn: ({ signal }) => answered(client.GET("/v1/training/about", { signal })),
    staleTime: NEVER,
  });
  return about.data ?? (about.isError ? { models: [], templates: [] } : undefined);
}
