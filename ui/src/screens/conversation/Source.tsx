import { useMemo } from "react";
import { Badge } from "@/kit/Badge";
import { LongList } from "@/kit/LongList";
import { RawText } from "./RawText";
import type { Row } from "./row";
import { diffLines, isRecorded, recordedOf, textsOf } from "./source";
import { anchorOf, pretty, type Turn, turnsOf } from "./turns";

const PAIR = 160;

/** What was recorded beside what it is read as, turn by turn where the record has a list of them. */
export function Source({ row }: { row: Row }) {
  const turns = useMemo(() => (row.conversation ? turnsOf(row.conversation) : []), [row.conversation]);
  const texts = useMemo(() => textsOf(row.record), [row.record]);
  const isPaired = turns.some((turn) => recordedOf(row.record, turn) !== undefined);
  if (turns.length === 0) return <RawText row={row} />;
  if (!isPaired)
    return (
      <div className="pair">
        <RawText row={row} />
        <div>
          {turns.map((turn) => (
            <ReadAs key={anchorOf(turn)} turn={turn} texts={texts} before={undefined} />
          ))}
        </div>
      </div>
    );
  return (
    <LongList label="Turns, as recorded and as read" className="turns" count={turns.length} estimate={PAIR}>
      {(index) => {
        const turn = turns[index];
        if (!turn) return null;
        const before = recordedOf(row.record, turn);
        return (
          <div className={`pair${turn.recorded !== null && turn.recorded === row.at ? " at-fault" : ""}`}>
            <section aria-label={`Turn ${turn.recorded ?? "outside the list"}, as recorded`}>
              <pre className="code">
                {before === undefined ? "not in the list of messages" : pretty(JSON.stringify(before))}
              </pre>
            </section>
            <ReadAs turn={turn} texts={texts} before={before} />
          </div>
        );
      }}
    </LongList>
  );
}

interface ReadAsProps {
  turn: Turn;
  /** Every text of the record. */
  texts: ReadonlySet<string>;
  /** The recorded message. */
  before: unknown;
}

function ReadAs({ turn, texts, before }: ReadAsProps) {
  const changed = turn.messages.filter(
    ({ text, recipient }) => text !== "" && !recipient && !isRecorded(texts, text),
  );
  const shown = turn.messages.map((message) =>
    Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null)),
  );
  return (
    <section aria-label={`Turn ${turn.recorded ?? "outside the list"}, as read`}>
      <pre className="code">{pretty(JSON.stringify(shown))}</pre>
      {changed.map(({ text, channel }) => (
        <Changed key={channel} before={contentOf(before)} after={text} />
      ))}
    </section>
  );
}

function Changed({ before, after }: { before: string; after: string }) {
  return (
    <details className="changed" open>
      <summary>
        <Badge tone="warn">not as recorded</Badge>
      </summary>
      <pre className="diff">
        {diffLines(before, after).map(({ sign, text }, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the lines of a difference stay in their order
          <span key={index} className={sign === "-" ? "gone" : sign === "+" ? "new" : "same"}>
            {sign} {text}
            {"\n"}
          </span>
        ))}
      </pre>
    </details>
  );
}

/** The longest text of a recorded message: what it says. */
function contentOf(message: unknown): string {
  return [...textsOf(message)].reduce((longest, text) => (text.length > longest.length ? text : longest), "");
}
