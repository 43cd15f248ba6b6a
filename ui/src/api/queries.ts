/** What has been fetched, and when it is looked at again. */
import { QueryClient } from "@tanstack/react-query";
import { isRetried } from "./client";

const FRESH_MS = 5_000;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      retry: isRetried,
      staleTime: FRESH_MS,
      networkMode: "always", // a server on this machine is there without a network
      refetchOnWindowFocus: true, // what another tab changed is seen when this one is looked at
    },
    mutations: { retry: false, networkMode: "always" },
  },
});
