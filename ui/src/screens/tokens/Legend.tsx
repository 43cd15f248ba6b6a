import { useSyncExternalStore } from "react";

export const MARKS = {
  trained: { sample: "abc", title: "trained", what: "The model learns to write it." },
  masked: { sample: "abc", title: "masked", what: "It is read, not learnt." },
  cut: { sample: "abc", title: "truncated", what: "No example has it." },
  control: { sample: "<|x|>", title: "control", what: "A control token of the vocabulary." },
  border: { sample: "abc", title: "part border", what: "An example begins here." },
  scored: {
    sample: "abc",
    title: "cost",
    what: "What it costs the model, where that is asked: a bar, the higher the more.",
  },
  kind: { sample: "abc", title: "who wrote it", what: "Tint by kind: template, user, reasoning, call …" },
} as const;
const SAMPLES: Record<string, string> = { kind: "kind-reasoning", scored: "scored cost-3" };
type MarkName = keyof typeof MARKS;

const KEY = "turnmill-token-marks-off";
const OFF_AT_FIRST = "kind";
let off = new Set((localStorage.getItem(KEY) ?? OFF_AT_FIRST).split(",").filter(Boolean));
const listeners = new Set<() => void>();

function toggle(mark: MarkName): void {
  off = new Set(off);
  if (!off.delete(mark)) off.add(mark);
  localStorage.setItem(KEY, [...off].join(","));
  for (const tell of listeners) tell();
}

function useOff(): ReadonlySet<string> {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => off,
  );
}

/** The classes of what shows tokens, for the marks that are switched off. */
export function useMarkClasses(): string {
  return [...useOff()].map((mark) => `no-${mark}`).join(" ");
}

/** What the marks of tokens mean; each can be switched off. */
export function Legend() {
  const without = useOff();
  return (
    <fieldset className="legend">
      <legend className="visually-hidden">Marks of tokens</legend>
      {Object.entries(MARKS).map(([mark, { sample, title, what }]) => (
        <button
          key={mark}
          type="button"
          aria-pressed={!without.has(mark)}
          title={what}
          onClick={() => toggle(mark as MarkName)}
        >
          <span className={`token ${SAMPLES[mark] ?? mark}`} aria-hidden="true">
            {sample}
          </span>
          {title}
        </button>
      ))}
    </fieldset>
  );
}
