/** What a training logged, put into order to be drawn. */

export type Line = Record<string, unknown>;

/** A curve over the steps: gaps are null. */
export interface Series {
  name: string;
  values: (number | null)[];
}

export interface Run {
  steps: number[];
  /** Loss of the steps, and of each evaluation: of all held-out rows, and of each source. */
  losses: Series[];
  rates: Series[];
  /** Trained tokens of a second, as far as the run's own times say it. */
  speeds: Series[];
  best: { step: number; loss: number } | null;
  /** Of the last step that was logged. */
  last: Line | null;
}

/** Lines with newer ones in the place of those of the same step and kind: a training that goes on logs some again. */
export function merged(before: readonly Line[], more: readonly Line[]): Line[] {
  const lines = new Map<string, Line>();
  for (const line of [...before, ...more]) lines.set(`${String(line.step)} ${kindOf(line)}`, line);
  return [...lines.values()].sort((first, second) => Number(first.step) - Number(second.step));
}

function kindOf(line: Line): string {
  return "eval/loss" in line ? "evaluation" : "loss" in line ? "step" : "epoch";
}

const OF_EVALUATION = /^eval\/(?:(.+)\/)?loss$/;

/**
 * The curves of a run.
 *
 * @param trainedTokens of one epoch; null where nobody said how many there are.
 */
export function runOf(lines: readonly Line[], trainedTokens: number | null): Run {
  const steps = [...new Set(lines.map(({ step }) => Number(step)))];
  const at = new Map(steps.map((step, index) => [step, index]));
  const found = new Map<string, Series>();
  const put = (name: string, step: unknown, value: unknown) => {
    const index = at.get(Number(step));
    if (typeof value !== "number" || index === undefined) return;
    const series = found.get(name) ?? { name, values: steps.map(() => null) };
    series.values[index] = value;
    found.set(name, series);
  };
  for (const line of lines) {
    put("training", line.step, line.loss);
    put("learning rate", line.step, line.learning_rate);
    for (const [name, value] of Object.entries(line)) {
      const evaluated = OF_EVALUATION.exec(name);
      if (evaluated) put(evaluated[1] ? `held out: ${evaluated[1]}` : "held out", line.step, value);
    }
  }
  for (const [step, speed] of speedsOf(lines, trainedTokens)) put("trained tokens a second", step, speed);
  const only = (...names: string[]) => [...found.values()].filter(({ name }) => names.includes(name));
  const apart = ["learning rate", "trained tokens a second"];
  return {
    steps,
    losses: [...found.values()].filter(({ name }) => !apart.includes(name)),
    rates: only("learning rate"),
    speeds: only("trained tokens a second"),
    best: bestOf(lines),
    last: lines.filter((line) => typeof line.loss === "number").at(-1) ?? null,
  };
}

/** Step and speed, from how far an epoch got between two lines. */
function* speedsOf(lines: readonly Line[], trainedTokens: number | null): Generator<[number, number]> {
  if (trainedTokens === null) return;
  let before: Line | null = null;
  for (const line of lines) {
    if (typeof line.seconds !== "number" || typeof line.epoch !== "number") continue;
    if (before) {
      const seconds = line.seconds - Number(before.seconds);
      const share = line.epoch - Number(before.epoch);
      if (seconds > 0 && share > 0) yield [Number(line.step), (trainedTokens * share) / seconds]; // not over a restart
    }
    before = line;
  }
}

function bestOf(lines: readonly Line[]): Run["best"] {
  const best = lines.filter((line) => line.best === true && typeof line["eval/loss"] === "number").at(-1);
  return best ? { step: Number(best.step), loss: best["eval/loss"] as number } : null;
}
