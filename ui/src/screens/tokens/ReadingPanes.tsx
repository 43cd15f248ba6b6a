import { type ReactNode, useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { useCursor } from "./cursor";
import { Heading } from "./Heading";
import { Lines } from "./Lines";
import { type Line, textLines, tokenLines } from "./lines";
import type { Reading } from "./reading";
import { TextLine } from "./TextLine";
import { TokenLine } from "./TokenLine";

const FEWEST = 24;
const USUAL = 80;

/** The text as the template writes it. */
export function TextPane({ reading }: { reading: Reading }) {
  const [measured, columns] = useColumns();
  const lines = useMemo(() => textLines(reading, columns), [reading, columns]);
  const draw = useCallback(
    (line: Line) =>
      line.kind === "tokens" ? <TextLine line={line} /> : <Heading line={line} reading={reading} />,
    [reading],
  );
  return measured(
    <Lines pane="text" label="Rendered text" reading={reading} lines={lines}>
      {draw}
    </Lines>,
  );
}

/** The tokens that the text becomes. */
export function TokenPane({ reading }: { reading: Reading }) {
  const [measured, columns] = useColumns();
  const lines = useMemo(() => tokenLines(reading, columns), [reading, columns]);
  const cursor = useCursor();
  useEffect(() => {
    cursor.tokenLines = lines;
    return () => {
      cursor.tokenLines = undefined;
    };
  }, [cursor, lines]);
  const draw = useCallback(
    (line: Line) =>
      line.kind === "tokens" ? <TokenLine line={line} /> : <Heading line={line} reading={reading} />,
    [reading],
  );
  return measured(
    <Lines pane="tokens" label="Tokens" reading={reading} lines={lines}>
      {draw}
    </Lines>,
  );
}

/** How many characters stand side by side in a pane, and what puts the pane where that is measured. */
function useColumns(): [(pane: ReactNode) => ReactNode, number] {
  const frame = useRef<HTMLDivElement>(null);
  const letters = useRef<HTMLSpanElement>(null);
  const [columns, setColumns] = useState(USUAL);
  useLayoutEffect(() => {
    const place = frame.current;
    if (!place) return;
    const measure = () => {
      const width = (letters.current?.getBoundingClientRect().width ?? 0) / 10;
      if (width > 0) setColumns(Math.max(FEWEST, Math.floor((place.clientWidth - 28) / width)));
    };
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(place);
    return () => observer.disconnect();
  }, []);
  const measured = (pane: ReactNode) => (
    <div ref={frame} className="measured">
      <span ref={letters} className="letters" aria-hidden="true">
        mmmmmmmmmm
      </span>
      {pane}
    </div>
  );
  return [measured, columns];
}
