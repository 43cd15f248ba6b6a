import { useMemo } from "react";
import { Empty } from "@/kit/Empty";
import { LongList } from "@/kit/LongList";
import { whole } from "@/kit/numbers";
import { RawText } from "./RawText";
import type { ReadConversation, Row } from "./row";
import { TurnCard } from "./TurnCard";
import { pretty, turnsOf } from "./turns";
import { useTurn } from "./useTurn";

const CARD = 120;

/** The turns of a row, and which of them the address is about. */
export function Chat({ row }: { row: Row }) {
  if (row.conversation === null)
    return (
      <Empty title="This row could not be read as a conversation.">
        <RawText row={row} />
      </Empty>
    );
  return <Turns row={row} conversation={row.conversation} />;
}

function Turns({ row, conversation }: { row: Row; conversation: ReadConversation }) {
  const turns = useMemo(() => turnsOf(conversation), [conversation]);
  const fault = turns.findIndex(({ recorded }) => recorded !== null && recorded === row.at);
  const [current, go] = useTurn(turns, fault);
  return (
    <>
      <Tools conversation={conversation} />
      <p className="quiet">
        {whole(turns.length)} turns; <kbd>[</kbd> and <kbd>]</kbd> step through them.
      </p>
      <LongList label="Turns" className="turns" count={turns.length} estimate={CARD} shown={current}>
        {(index) => {
          const turn = turns[index];
          return turn ? (
            <TurnCard
              turn={turn}
              isCurrent={index === current}
              fault={index === fault ? row.code : null}
              onChoose={() => go(index)}
            />
          ) : null;
        }}
      </LongList>
      {row.truncated ? <p className="quiet">The row is longer than what is shown as its raw text.</p> : null}
    </>
  );
}

function Tools({ conversation }: { conversation: ReadConversation }) {
  const { tools, template_kwargs } = conversation;
  const others = Object.keys(template_kwargs).filter((name) => name !== "tools");
  return (
    <>
      {tools.length > 0 ? (
        <details className="panel">
          <summary>
            {tools.length === 1 ? "1 tool is defined" : `${whole(tools.length)} tools are defined`}
          </summary>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which a keyboard must be able to do */}
          <pre tabIndex={0}>{pretty(JSON.stringify(tools))}</pre>
        </details>
      ) : null}
      {others.length > 0 ? (
        <details className="panel">
          <summary>Template arguments: {others.join(", ")}</summary>
          <pre>{pretty(JSON.stringify(template_kwargs))}</pre>
        </details>
      ) : null}
    </>
  );
}
