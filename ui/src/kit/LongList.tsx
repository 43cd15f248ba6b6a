import { useVirtualizer } from "@tanstack/react-virtual";
import { type ReactNode, useEffect, useRef } from "react";

interface LongListProps {
  /** What the list is of, for whoever cannot see it. */
  label: string;
  count: number;
  /** Pixels of an item, before it was measured. */
  estimate: number;
  /** Something of this items' own, or its place. */
  keyOf?: (index: number) => string | number;
  children: (index: number) => ReactNode;
  /** The end is near: fetch more. */
  onNearEnd?: () => void;
  /** The item that is brought into sight. */
  shown?: number | undefined;
  className?: string;
}

const NEAR = 20;

/** A list of any length, of which only what is in sight is in the document. */
export function LongList({
  label,
  count,
  estimate,
  keyOf,
  children,
  onNearEnd,
  shown,
  className,
}: LongListProps) {
  const frame = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count,
    getScrollElement: () => frame.current,
    estimateSize: () => estimate,
    overscan: 8,
    ...(keyOf ? { getItemKey: keyOf } : {}),
  });
  const items = rows.getVirtualItems();
  const last = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (last >= count - NEAR) onNearEnd?.();
  }, [last, count, onNearEnd]);
  useEffect(() => {
    if (shown !== undefined && shown < count) rows.scrollToIndex(shown, { align: "auto" });
  }, [shown, count, rows]);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by a keyboard
    <section ref={frame} className={`long-list ${className ?? ""}`} tabIndex={0} aria-label={label}>
      <ul style={{ height: rows.getTotalSize() }}>
        {items.map((item) => (
          <li
            key={item.key}
            aria-setsize={count}
            aria-posinset={item.index + 1}
            data-index={item.index}
            ref={rows.measureElement}
            style={{ transform: `translateY(${item.start}px)` }}
          >
            {children(item.index)}
          </li>
        ))}
      </ul>
    </section>
  );
}
