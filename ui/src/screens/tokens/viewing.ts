/** What the address says of the token viewer: the row, and what it is put under. */
import { useCallback, useMemo } from "react";
import { useSearchParams } from "wouter";
import type { Schemas } from "@/api/client";

export type Asked = Schemas["ExplainRequest"];

/** The names of the options in the address, beside the model and the templates. */
export const OPTIONS = [
  "history",
  "max_tokens",
  "overflow",
  "turns",
  "reasoning",
  "observations",
  "score",
] as const;
export type Option = (typeof OPTIONS)[number];
export type Choice = Partial<Record<Option | "model" | "template" | "against", string>>;
const NAMES = ["model", "template", "against", ...OPTIONS] as const;

export interface Viewing {
  choice: Choice;
  /** Values that differ; "" takes one out of the address. */
  change: (changes: Partial<Record<string, string>>) => void;
  get: (name: string) => string | null;
}

export function useViewing(): Viewing {
  const [params, setParams] = useSearchParams();
  const choice = useMemo(() => {
    const found: Choice = {};
    for (const name of NAMES) {
      const value = params.get(name);
      if (value) found[name] = value;
    }
    return found;
  }, [params]);
  const change = useCallback(
    (changes: Partial<Record<string, string>>) =>
      setParams(
        (before) => {
          const next = new URLSearchParams(before);
          for (const [name, value] of Object.entries(changes)) {
            if (value) next.set(name, value);
            else next.delete(name);
          }
          return next;
        },
        { replace: true },
      ),
    [setParams],
  );
  const get = useCallback((name: string) => params.get(name), [params]);
  return { choice, change, get };
}

/** What the server is asked, of the chosen template unless another is given; "": of the model's own. */
export function askedOf(line: number, choice: Choice, template: string | undefined = choice.template): Asked {
  const most = Number(choice.max_tokens);
  return {
    line,
    ...(choice.model ? { model: choice.model } : {}),
    ...(template ? { template } : {}),
    special_tokens: {},
    render: { history: oneOf(["final", "auto", "per-turn"], choice.history), control_tokens: "escape" },
    loss: {
      turns: oneOf(["all", "last"], choice.turns),
      reasoning: choice.reasoning !== "false",
      observations: choice.observations === "true",
      scaling: "uniform",
      fractional: false,
    },
    fit: {
      max_tokens: Number.isInteger(most) && most > 0 ? most : null,
      overflow: oneOf(["cut", "drop", "continue"], choice.overflow),
    },
    score: choice.score === "true" && choice.model !== undefined, // a template alone costs nothing
  };
}

/** What is looked at where the address does not say: the server's first model, else turnmill's first template. */
export function withDefaults(
  choice: Choice,
  models: readonly string[],
  templates: readonly string[],
): Choice {
  if (choice.model || choice.template) return choice;
  const [model, template] = [models[0], templates[0] ?? "chatml"];
  return model ? { ...choice, model } : { ...choice, template };
}

/** The value, if it is one of them, else the first of them, which is the default. */
function oneOf<T extends string>(values: readonly [T, ...T[]], value: string | undefined): T {
  return values.find((one) => one === value) ?? values[0];
}
