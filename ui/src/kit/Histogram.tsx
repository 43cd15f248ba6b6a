import type { KeyboardEvent } from "react";

export interface Bar {
  /** What the bar stands for, such as "4 to 7 turns". */
  label: string;
  count: number;
  isChosen?: boolean;
}

interface HistogramProps {
  /** What is counted, such as "Turns of a row". */
  title: string;
  bars: readonly Bar[];
  /** A bar was clicked, or chosen with the keyboard. */
  onChoose?: (index: number) => void;
}

const HEIGHT = 90;
const BAR = 24;
/** Fewer bars are no wider than so many are. */
const LEAST_BARS = 8;

/** Counts as bars, each of which is a button; the same counts as a table, for whoever reads rather than looks. */
export function Histogram({ title, bars, onChoose }: HistogramProps) {
  const most = Math.max(1, ...bars.map((bar) => bar.count));
  return (
    <figure className="panel">
      <figcaption>
        <strong>{title}</strong>
      </figcaption>
      {/* biome-ignore lint/a11y/useSemanticElements: an SVG cannot be a fieldset */}
      <svg
        className="histogram"
        viewBox={`0 0 ${BAR * Math.max(bars.length, LEAST_BARS)} ${HEIGHT + 4}`}
        preserveAspectRatio="none"
        role="group"
        aria-label={title}
      >
        {bars.map((bar, index) => (
          <OneBar key={bar.label} bar={bar} index={index} most={most} onChoose={onChoose} />
        ))}
      </svg>
      <details>
        <summary>As a table</summary>
        <table>
          <tbody>
            {bars.map((bar) => (
              <tr key={bar.label}>
                <th scope="row">{bar.label}</th>
                <td className="number">{bar.count.toLocaleString("en")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </figure>
  );
}

interface OneBarProps {
  bar: Bar;
  index: number;
  most: number;
  onChoose: ((index: number) => void) | undefined;
}

function OneBar({ bar, index, most, onChoose }: OneBarProps) {
  const height = bar.count === 0 ? 0 : Math.max(2, (HEIGHT * bar.count) / most); // a single row is seen, too
  const said = `${bar.label}: ${bar.count.toLocaleString("en")} rows`;
  const shape = (
    <>
      <title>{said}</title>
      <rect className="bar-hit" x={BAR * index} y={0} width={BAR} height={HEIGHT + 4} />
      <rect className="bar" x={BAR * index + 2} y={HEIGHT + 2 - height} width={BAR - 4} height={height} />
    </>
  );
  if (!onChoose) return <g>{shape}</g>;
  const choose = () => onChoose(index);
  const press = (event: KeyboardEvent) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    choose();
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: an SVG has no button
    <g
      role="button"
      tabIndex={0}
      aria-pressed={bar.isChosen ?? false}
      aria-label={said}
      onClick={choose}
      onKeyDown={press}
    >
      {shape}
    </g>
  );
}
