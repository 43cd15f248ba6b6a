/** Every screen: its path, and what is loaded when somebody goes there. */
import { type ComponentType, lazy } from "react";
import { type Loaded, persistently } from "./kit/loading";

export interface PageRoute {
  path: string;
  Screen: ComponentType;
  /** Fetches the screen's code, so that it is there should the server be gone when somebody goes there. */
  load: () => Promise<Loaded>;
}

function screen(load: () => Promise<Loaded>): Omit<PageRoute, "path"> {
  return { Screen: lazy(() => persistently(load)), load };
}

/** In the order in which they are tried: a path of fixed words stands before one that takes any. */
export const ROUTES: readonly PageRoute[] = [
  { path: "/", ...screen(() => import("./screens/datasets/Datasets")) },
  { path: "/datasets/:name", ...screen(() => import("./screens/dataset/Dataset")) },
  { path: "/datasets/:name/quarantine", ...screen(() => import("./screens/quarantine/Quarantine")) },
  { path: "/datasets/:name/compare", ...screen(() => import("./screens/compare/Compare")) },
  { path: "/datasets/:name/rows/:line", ...screen(() => import("./screens/conversation/Conversation")) },
  { path: "/datasets/:name/rows/:line/tokens", ...screen(() => import("./screens/tokens/Tokens")) },
  { path: "/mix", ...screen(() => import("./screens/mix/Mix")) },
  { path: "/jobs", ...screen(() => import("./screens/jobs/Jobs")) },
  { path: "/jobs/new", ...screen(() => import("./screens/jobs/NewJob")) },
  { path: "/jobs/:id", ...screen(() => import("./screens/jobs/Job")) },
  { path: "/jobs/:id/training", ...screen(() => import("./screens/training/Training")) },
  { path: "/jobs/:id/audit", ...screen(() => import("./screens/audit/Audit")) },
  { path: "/jobs/:id/quarantine", ...screen(() => import("./screens/quarantine/JobQuarantine")) },
  { path: "/settings", ...screen(() => import("./screens/settings/Settings")) },
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
