/** What a token costs a model, as levels that are drawn and words that are read. */

/** Nats from which on a token is of each level; below the first one it was all but certain. */
const LEVELS = [0.05, 0.5, 1.5, 3, 6];

/** 0, all but certain, to 5, a surprise. */
export function levelOf(nats: number): number {
  return LEVELS.filter((least) => nats >= least).length;
}

/** The cost, and the probability that it stands for. */
export function costSaid(nats: number): string {
  const share = 100 * Math.exp(-nats);
  return `${nats.toFixed(2)} nats: the model gave it ${share >= 0.1 ? share.toPrecision(2) : "less than 0.1"} %`;
}
