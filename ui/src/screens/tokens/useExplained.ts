/** What the server says of a row under a model or a template. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { answered, client } from "@/api/client";
import { type Explained, Reading } from "./reading";
import type { Asked } from "./viewing";

const KEPT_MS = 60_000;

export function useReading(name: string, asked: Asked | null): UseQueryResult<Reading> {
  return useQuery({
    queryKey: ["datasets", name, "explain", asked],
    queryFn: async ({ signal }) => {
      if (asked === null) throw new Error("nothing is asked");
      const said = client.POST("/v1/training/datasets/by-name/{name}/explain", {
        params: { path: { name } },
        body: asked,
        signal,
      });
      return new Reading((await answered(said)) as Explained);
    },
    enabled: asked !== null,
    structuralSharing: false, // a hundred thousand tokens are not compared one by one
    staleTime: KEPT_MS,
    refetchOnWindowFocus: false,
  });
}
