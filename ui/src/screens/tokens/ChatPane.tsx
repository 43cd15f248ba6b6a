import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useMemo, useRef } from "react";
import type { ReadConversation, ReadMessage } from "../conversation/row";
import { functionName, saidBy, type Turn, turnsOf } from "../conversation/turns";
import { useActive, useCursor, useFollow } from "./cursor";
import { placeIn } from "./places_in_chat";
import type { Reading } from "./reading";
import { whyOfTurn } from "./whys";

const CARD = 110;

/** The conversation beside what becomes of it. */
export function ChatPane({ conversation, reading }: { conversation: ReadConversation; reading: Reading }) {
  const turns = useMemo(() => turnsOf(conversation), [conversation]);
  const frame = useRef<HTMLDivElement>(null);
  const cursor = useCursor();
  const rows = useVirtualizer({
    count: turns.length,
    getScrollElement: () => frame.current,
    estimateSize: () => CARD,
    overscan: 6,
  });
  useFollow(
    "chat",
    useCallback(
      ({ message }) => {
        const wanted = turns.findIndex(({ recorded }) => recorded === message);
        const [first, last] = [rows.range?.startIndex ?? 0, rows.range?.endIndex ?? 0];
        if (wanted >= 0 && (wanted < first || wanted > last)) rows.scrollToIndex(wanted, { align: "center" });
      },
      [turns, rows],
    ),
  );
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by a keyboard
    <section ref={frame} className="lines chat" tabIndex={0} aria-label="Conversation">
      <div className="all-lines" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const turn = turns[index];
          return turn ? (
            <div
              key={index}
              data-index={index}
              ref={rows.measureElement}
              className="line"
              style={{ transform: `translateY(${start}px)` }}
            >
              <ChatTurn
                turn={turn}
                reading={reading}
                onPoint={(isOver) =>
                  cursor.hover(isOver ? { position: null, message: turn.recorded } : null, "chat")
                }
                onChoose={() => cursor.choose({ position: null, message: turn.recorded }, "chat")}
              />
            </div>
          ) : null;
        })}
      </div>
    </section>
  );
}

interface ChatTurnProps {
  turn: Turn;
  reading: Reading;
  onPoint: (isOver: boolean) => void;
  onChoose: () => void;
}

function ChatTurn({ turn, reading, onPoint, onChoose }: ChatTurnProps) {
  const { position, message } = useActive();
  const isActive = message !== null && message === turn.recorded;
  const told = reading.explained.turns.find((one) => one.message === turn.recorded);
  return (
    // biome-ignore lint/a11y/useKeyWithMouseEvents: its button does the same
    // biome-ignore lint/a11y/noStaticElementInteractions: the same
    <div
      className={`chat-turn ${turn.role}${isActive ? " active" : ""}`}
      onMouseOver={() => onPoint(true)}
      onMouseLeave={() => onPoint(false)}
      data-message={turn.recorded}
    >
      <button
        type="button"
        className="plain"
        onClick={onChoose}
        title={told ? whyOfTurn(told.why) : undefined}
      >
        <strong>
          {turn.recorded === null ? "" : `#${turn.recorded} `}
          {turn.role}
        </strong>
        {told ? (
          <span className={told.trained ? "trains" : "quiet"}>
            {told.trained ? "trains" : `masked: ${told.why}`}
          </span>
        ) : null}
      </button>
      {turn.messages.map((one, index) => (
        <Said
          // biome-ignore lint/suspicious/noArrayIndexKey: the messages of a turn stay in their order
          key={index}
          message={one}
          mark={isActive && position !== null ? placeIn(one, reading, position) : null}
        />
      ))}
    </div>
  );
}

const MOST = 4_000;

function Said({ message, mark }: { message: ReadMessage; mark: [number, number] | null }) {
  const said = saidBy(message);
  const text = message.text.length > MOST ? `${message.text.slice(0, MOST)} …` : message.text;
  return (
    <p className={`chat-text ${said}`}>
      {said === "text" ? null : (
        <span className="quiet">
          {said === "call" ? `call ${functionName(message.recipient)}: ` : `${said}: `}
        </span>
      )}
      {mark ? (
        <>
          {text.slice(0, mark[0])}
          <mark>{text.slice(...mark)}</mark>
          {text.slice(mark[1])}
        </>
      ) : (
        text
      )}
    </p>
  );
}
