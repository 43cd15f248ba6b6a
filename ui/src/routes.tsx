/** Every screen: its path, and what is loaded when somebody goes there. */
import { type ComponentType, lazy } from "react";

export interface PageRoute {
  path: string;
  Screen: ComponentType;
}

/** In the order in which they are tried: a path of fixed words stands before one that takes any. */
export const ROUTES: readonly PageRoute[] = [
  { path: "/", Screen: lazy(() => import("./screens/datasets/Datasets")) },
  { path: "/datasets/:name", Screen: lazy(() => import("./screens/dataset/Dataset")) },
  { path: "/datasets/:name/quarantine", Screen: lazy(() => import("./screens/quarantine/Quarantine")) },
  { path: "/datasets/:name/compare", Screen: lazy(() => import("./screens/compare/Compare")) },
  { path: "/datasets/:name/rows/:line", Screen: lazy(() => import("./screens/conversation/Conversation")) },
  { path: "/datasets/:name/rows/:line/tokens", Screen: lazy(() => import("./screens/tokens/Tokens")) },
  { path: "/mix", Screen: lazy(() => import("./screens/mix/Mix")) },
  { path: "/jobs", Screen: lazy(() => import("./screens/jobs/Jobs")) },
  { path: "/jobs/new", Screen: lazy(() => import("./screens/jobs/NewJob")) },
  { path: "/jobs/:id", Screen: lazy(() => import("./screens/jobs/Job")) },
  { path: "/jobs/:id/training", Screen: lazy(() => import("./screens/training/Training")) },
  { path: "/jobs/:id/audit", Screen: lazy(() => import("./screens/audit/Audit")) },
  { path: "/jobs/:id/quarantine", Screen: lazy(() => import("./screens/quarantine/JobQuarantine")) },
  { path: "/settings", Screen: lazy(() => import("./screens/settings/Settings")) },
];

/** What the bar at the top leads to; `covers` are the paths that belong to it. */
export const PLACES = [
  { path: "/", title: "Datasets", covers: /^\/($|datasets)/ },
  { path: "/mix", title: "Mix", covers: /^\/mix/ },
  { path: "/jobs", title: "Jobs", covers: /^\/jobs/ },
  { path: "/settings", title: "Settings", covers: /^\/settings/ },
] as const;

/** The path of a screen of a dataset, such as `datasetPath(name, "rows", 12, "tokens")`. */
export function datasetPath(name: string, ...parts: (string | number)[]): string {
  return ["/datasets", encodeURIComponent(name), ...parts].join("/");
}

export function jobPath(id: string, ...parts: string[]): string {
  return ["/jobs", id, ...parts].join("/");
}
