import { useVirtualizer } from "@tanstack/react-virtual";
import { type MouseEvent, type ReactNode, useCallback, useEffect, useRef } from "react";
import { type PaneName, useCursor, useFollow } from "./cursor";
import { type Line, lineOf } from "./lines";
import type { Reading } from "./reading";

interface LinesProps {
  pane: PaneName;
  /** What the pane shows, for whoever cannot see it. */
  label: string;
  reading: Reading;
  lines: readonly Line[];
  children: (line: Line) => ReactNode;
}

/** Pixels of a line: all are as high, so that none need be measured. */
export const LINE_HEIGHT = 26;

/** A pane of lines, of which only those in sight are in the document; the pointer over a token moves the cursor. */
export function Lines({ pane, label, reading, lines, children }: LinesProps) {
  const frame = useRef<HTMLDivElement>(null);
  const cursor = useCursor();
  const rows = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => LINE_HEIGHT,
    overscan: 12,
  });
  const show = useCallback(
    (position: number) => {
      const wanted = lineOf(lines, position);
      const [first, last] = [rows.range?.startIndex ?? 0, rows.range?.endIndex ?? 0];
      if (wanted <= first || wanted >= last) rows.scrollToIndex(wanted, { align: "center" });
    },
    [lines, rows],
  );
  useFollow(
    pane,
    useCallback(
      ({ position, message }) => {
        const wanted = position ?? (message === null ? null : firstOf(reading, message));
        if (wanted !== null) show(wanted);
      },
      [reading, show],
    ),
  );
  useEffect(() => {
    if (cursor.position !== null) show(cursor.position); // lines were made anew, as for another width
  }, [cursor, show]);
  const point = (event: MouseEvent, isChoice: boolean) => {
    const position = positionOf(event.target);
    if (position === null) {
      if (!isChoice) cursor.hover(null, pane);
      return;
    }
    const pointed = { position, message: reading.fact(position).message };
    if (isChoice) cursor.choose(pointed, pane);
    else cursor.hover(pointed, pane);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the arrow keys move the cursor wherever the focus is
    // biome-ignore lint/a11y/useKeyWithMouseEvents: the same
    <section
      ref={frame}
      className={`lines ${pane}`}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by a keyboard
      tabIndex={0}
      aria-label={label}
      onMouseOver={(event) => point(event, false)}
      onMouseLeave={() => cursor.hover(null, pane)}
      onClick={(event) => point(event, true)}
    >
      <div className="all-lines" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, start }) => {
          const line = lines[index];
          return line ? (
            <div key={index} className="line" style={{ transform: `translateY(${start}px)` }}>
              {children(line)}
            </div>
          ) : null;
        })}
      </div>
    </section>
  );
}

function positionOf(target: EventTarget): number | null {
  const found = target instanceof Element ? target.closest<HTMLElement>("[data-at]") : null;
  return found ? Number(found.dataset.at) : null;
}

function firstOf(reading: Reading, message: number): number | null {
  for (const segment of reading.segments) {
    const index = segment.runs.findIndex((run) => run.message === message);
    if (index >= 0) return segment.first + (segment.runs[index - 1]?.end ?? 0);
  }
  return null;
}
