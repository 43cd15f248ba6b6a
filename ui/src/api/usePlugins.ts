/** The plug-ins of a family that the server knows, which do not change while it runs. */
import { useQuery } from "@tanstack/react-query";
import { answered, client, type Schemas } from "./client";

export function usePlugins(family: "dialects" | "repairs" | "strategies"): readonly Schemas["Plugin"][] {
  const plugins = useQuery({
    queryKey: ["plugins", family],
    queryFn: () => answered(client.GET("/v1/training/plugins/{family}", { params: { path: { family } } })),
    staleTime: Number.POSITIVE_INFINITY,
  });
  return plugins.data?.plugins ?? [];
}
