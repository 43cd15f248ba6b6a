/** One row of a dataset as the server tells it: as it lies in the file, and as it is read. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "@/api/client";

export type Row = Schemas["DatasetRow"];
export type ReadConversation = Schemas["ReadConversation"];
export type ReadMessage = Schemas["ReadMessage"];

export function useRow(name: string, line: number): UseQueryResult<Row> {
  return useQuery({
    queryKey: ["datasets", name, "rows", line],
    queryFn: ({ signal }) =>
      answered(
        client.GET("/v1/training/datasets/by-name/{name}/rows/{line}", {
          params: { path: { name, line } },
          signal,
        }),
      ),
  });
}
