/** Why a token trains or does not, in sentences; the words are those of `turnmill explain --json`. */
import type { Fact } from "./reading";

export const WHYS: Record<string, string> = {
  trained: "The model wrote this, and learns to write it.",
  template: "The template wrote this: the model is given it and never has to write it.",
  role: "Somebody else wrote this: the model reads it as context and does not learn to write it.",
  "reasoning-off": "This is reasoning, which the option loss.reasoning leaves out of training.",
  "not-last": "Only the last turn trains: the option loss.turns is last.",
  "weight-zero": "The row gives this message the weight 0.",
  context: "Shown here as context: it trains in another example of this row.",
  straddles:
    "Some characters of this token train and some do not: a token is trained as a whole, so this one is not.",
  cut: "No example has this token: the example is full, or nothing behind it trains.",
  rejected: "The row leaves: nothing of it is learnt.",
};

const OF_TURN: Record<string, string> = {
  ...WHYS,
  cut: "The example is full before this message begins: see max_tokens and overflow.",
  role: "Not the model's own words: it reads them.",
  quoted: "The template writes this message where the model does not speak.",
};

export function whyOf(fact: Fact): string {
  if (fact.why !== null) return WHYS[fact.why] ?? fact.why;
  return "Without a tokenizer only whole spans are told apart: this one does not train.";
}

export function whyOfTurn(why: string): string {
  const code = /^rejected:(.*)$/.exec(why)?.[1];
  return code ? `The row leaves with ${code}.` : (OF_TURN[why] ?? why);
}

/** What a token is, in one word: the class that it is drawn with. */
export type Mark = "trained" | "masked" | "cut";

export function markOf(fact: Fact): Mark {
  if (fact.part === null) return "cut";
  return fact.isTrained ? "trained" : "masked";
}

export const KINDS: Record<string, string> = {
  frame: "headers and ends that the template writes",
  scaffold: "what the template writes around thoughts",
  system: "instructions",
  user: "what a user says",
  tools: "definitions of tools",
  reasoning: "thoughts of the model",
  answer: "answers of the model",
  call: "calls of tools",
  result: "results of tools",
  stop: "what ends a turn of the model",
};
