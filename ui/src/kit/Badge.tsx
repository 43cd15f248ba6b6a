import type { ReactNode } from "react";

export type Tone = "good" | "warn" | "bad" | "neutral";
const SIGNS: Record<Tone, string> = { good: "✓", warn: "!", bad: "✕", neutral: "" };

/** A word with a sign and a colour, which all say the same. */
export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className={`badge ${tone}`}>
      {SIGNS[tone] ? <span aria-hidden="true">{SIGNS[tone]}</span> : null}
      {children}
    </span>
  );
}
