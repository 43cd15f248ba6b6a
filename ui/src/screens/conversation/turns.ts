/** Messages as a person counts them: what was recorded as one message is one turn, whatever it became. */
import type { ReadConversation, ReadMessage } from "./row";

export interface Turn {
  /** Index in the recorded list, as codes and `turnmill explain` count; null: it stood outside of it. */
  recorded: number | null;
  role: ReadMessage["role"];
  messages: readonly ReadMessage[];
}

export function turnsOf(conversation: ReadConversation): Turn[] {
  const turns: (Turn & { messages: ReadMessage[] })[] = [];
  for (const message of conversation.messages) {
    const recorded = message.recorded < 0 ? null : message.recorded;
    const last = turns.at(-1);
    if (last && recorded !== null && last.recorded === recorded) last.messages.push(message);
    else turns.push({ recorded, role: message.role, messages: [message] });
  }
  return turns;
}

/** What a turn is called in an address: `turn-3`. */
export function anchorOf(turn: Turn): string {
  return turn.recorded === null ? "turn-first" : `turn-${turn.recorded}`;
}

/** Which of the turns an address's `#turn-3` means; -1: none. */
export function turnAt(turns: readonly Turn[], hash: string): number {
  return turns.findIndex((turn) => `#${anchorOf(turn)}` === hash);
}

/** What kind of thing a message says. */
export type Said = "reasoning" | "call" | "result" | "text";

export function saidBy(message: ReadMessage): Said {
  if (message.channel === "analysis") return "reasoning";
  if (message.role === "assistant" && message.recipient !== null) return "call";
  return message.role === "tool" ? "result" : "text";
}

/** The name of a function without the namespace that all of them have. */
export function functionName(name: string | null): string {
  return (name ?? "").replace(/^functions\./, "");
}

/** JSON text on several lines, its numbers and keys as they are written; any other text as it is. */
export function pretty(text: string): string {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    JSON.parse(text);
  } catch {
    return text;
  }
  return indented(text);
}

const PIECES = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/** JSON text indented piece by piece: parsing would round long numbers and drop keys that stand twice. */
function indented(text: string): string {
  let depth = 0;
  let written = "";
  let before = "";
  const fresh = () => `\n${"  ".repeat(depth)}`;
  for (const [piece] of text.matchAll(PIECES)) {
    const isClosing = piece === "}" || piece === "]";
    if (isClosing) depth -= 1;
    const isFresh = isClosing ? !"{[".includes(before) : before !== "" && "{[,".includes(before);
    written += `${isFresh ? fresh() : ""}${piece}${piece === ":" ? " " : ""}`;
    if (piece === "{" || piece === "[") depth += 1;
    before = piece;
  }
  return written;
}
