/** A histogram of the profile as bars, and a bar as the filter that it stands for. */
import type { Schemas } from "@/api/client";
import type { Bar } from "@/kit/Histogram";
import { whole } from "@/kit/numbers";
import type { Filters } from "./rows";

type Histogram = Schemas["RowHistogram"];
export type Measure = "turns" | "characters";

/** The bars up to the last one that has rows; the one that the filters ask for is chosen. */
export function barsOf(measure: Measure, { edges, counts }: Histogram, filters: Filters): Bar[] {
  const last = counts.findLastIndex((count) => count > 0);
  return counts.slice(0, last + 1).map((count, place) => ({
    label: labelOf(measure, edges, place),
    count,
    isChosen: isChosen(measure, edges, place, filters),
  }));
}

/** What asks for the rows of a bar; of one that is chosen, what asks for all again. */
export function filterOf(measure: Measure, { edges }: Histogram, place: number, filters: Filters): Filters {
  const [low, high] = [`min_${measure}`, `max_${measure}`] as const;
  if (isChosen(measure, edges, place, filters)) return { [low]: "", [high]: "" };
  const next = edges[place + 1];
  return { [low]: String(edges[place] ?? 0), [high]: next === undefined ? "" : String(next - 1) };
}

function isChosen(measure: Measure, edges: readonly number[], place: number, filters: Filters): boolean {
  const next = edges[place + 1];
  const high = next === undefined ? undefined : String(next - 1);
  return filters[`min_${measure}`] === String(edges[place] ?? 0) && filters[`max_${measure}`] === high;
}

function labelOf(measure: Measure, edges: readonly number[], place: number): string {
  const [from = 0, next] = [edges[place], edges[place + 1]];
  if (next === undefined) return `${whole(from)} ${measure} and more`;
  return next - 1 === from ? `${whole(from)} ${measure}` : `${whole(from)} to ${whole(next - 1)} ${measure}`;
}
