import { useState } from "react";
import { Badge } from "@/kit/Badge";
import { whole } from "@/kit/numbers";
import type { ReadMessage } from "./row";
import { anchorOf, functionName, pretty, type Said, saidBy, type Turn } from "./turns";

interface TurnCardProps {
  turn: Turn;
  isCurrent: boolean;
  /** The code that the row leaves with for the sake of this turn. */
  fault: string | null;
  onChoose: () => void;
}

/** One recorded message: who speaks, and each of the things that it says. */
export function TurnCard({ turn, isCurrent, fault, onChoose }: TurnCardProps) {
  const anchor = anchorOf(turn);
  const [first] = turn.messages;
  const { pathname, search } = window.location;
  return (
    <article
      id={anchor}
      className={`turn ${turn.role}${isCurrent ? " current" : ""}${fault ? " at-fault" : ""}`}
      aria-current={isCurrent ? "true" : undefined}
      aria-label={`Turn ${turn.recorded ?? "outside the list"}, ${turn.role}`}
    >
      <header className="row">
        <a
          href={`${pathname}${search}#${anchor}`}
          onClick={(event) => {
            event.preventDefault();
            onChoose();
          }}
        >
          {turn.recorded === null ? "outside the list" : `#${turn.recorded}`}
        </a>
        <strong className="role">{turn.role}</strong>
        {first?.name ? <span className="quiet">{functionName(first.name)}</span> : null}
        {weightsOf(turn).map((weight) => (
          <Badge key={weight} tone={weight === 0 ? "warn" : "neutral"}>
            weight {weight}
          </Badge>
        ))}
        {fault ? <Badge tone="bad">{fault}</Badge> : null}
      </header>
      {turn.messages.map((message, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a turn stay in their order
        <Utterance key={index} message={message} />
      ))}
    </article>
  );
}

function weightsOf(turn: Turn): number[] {
  const found = turn.messages.map(({ weight }) => weight).filter((weight) => weight !== null);
  return [...new Set(found)];
}

const TITLES: Record<Said, string> = { reasoning: "reasoning", call: "call", result: "result", text: "" };

function Utterance({ message }: { message: ReadMessage }) {
  const said = saidBy(message);
  if (said === "reasoning")
    return (
      <details className="said reasoning">
        <summary>
          Reasoning, {whole(message.text.length)} characters <Channel message={message} />
        </summary>
        <Text text={message.text} />
      </details>
    );
  return (
    <div className={`said ${said}`}>
      <div className="row">
        {TITLES[said] ? <Badge>{TITLES[said]}</Badge> : null}
        {said === "call" ? <strong>{functionName(message.recipient)}</strong> : null}
        <Channel message={message} />
      </div>
      {said === "text" ? <Text text={message.text} /> : <Text text={pretty(message.text)} isCode />}
    </div>
  );
}

function Channel({ message: { channel } }: { message: ReadMessage }) {
  return channel ? <span className="channel">{channel}</span> : null;
}

const MOST = 8_000;

/** Text as it is; of a long one the beginning, until the rest is asked for. */
function Text({ text, isCode = false }: { text: string; isCode?: boolean }) {
  const [isWhole, setWhole] = useState(false);
  if (text === "") return <p className="quiet">(nothing is said)</p>;
  const shown = isWhole || text.length <= MOST ? text : text.slice(0, MOST);
  return (
    <>
      {isCode ? <pre className="code">{shown}</pre> : <p className="text">{shown}</p>}
      {shown.length < text.length ? (
        <button type="button" onClick={() => setWhole(true)}>
          Show all {whole(text.length)} characters
        </button>
      ) : null}
    </>
  );
}
