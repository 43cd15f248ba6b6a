/** Datasets and their weights, as they stand in the address: `?weight.NAME=2`. */

/** Name → weight. */
export type Mixture = Record<string, number>;

const PREFIX = "weight.";

export function mixtureOf(search: URLSearchParams): Mixture {
  const found: Mixture = {};
  for (const [key, value] of search) {
    const weight = Number(value);
    if (key.startsWith(PREFIX) && Number.isFinite(weight) && weight >= 0)
      found[key.slice(PREFIX.length)] = weight;
  }
  return found;
}

/** The address with a dataset's weight; with null the dataset is out of it. */
export function withWeight(search: URLSearchParams, name: string, weight: number | null): URLSearchParams {
  const next = new URLSearchParams(search);
  if (weight === null) next.delete(PREFIX + name);
  else next.set(PREFIX + name, String(weight));
  return next;
}
