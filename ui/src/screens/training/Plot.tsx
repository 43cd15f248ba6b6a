import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import type { Series } from "./metrics";
import { HEIGHT, type Mark, plotOptions } from "./plot";

interface PlotProps {
  title: string;
  steps: readonly number[];
  series: readonly Series[];
  mark: Mark | null;
  format: (value: number) => string;
}

/** Curves over steps, which grow while they are looked at. Other curves are another plot: give it another `key`. */
export function Plot({ title, steps, series, mark, format }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data: uPlot.AlignedData = [[...steps], ...series.map(({ values }) => [...values])];
  const latest = useRef({ data, series, format });
  latest.current = { data, series, format };
  const marked = useRef(mark);
  marked.current = mark;
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    const draw = () => {
      plot.current?.destroy();
      plot.current = new uPlot(
        plotOptions({ box, mark: marked, ...latest.current }),
        latest.current.data,
        box,
      );
    };
    draw();
    const stop = whenItLooksOtherwise(box, draw, () =>
      plot.current?.setSize({ width: box.clientWidth, height: HEIGHT }),
    );
    return () => {
      stop();
      plot.current?.destroy();
      plot.current = null;
    };
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the numbers are others where these are
  useEffect(() => plot.current?.setData(latest.current.data), [steps, series, mark]);
  return (
    <div
      ref={place}
      className="plot"
      role="img"
      aria-label={`${title}, by step; the table below has the numbers`}
    />
  );
}

/** Tells of another theme, and of another width; gives what ends that. */
function whenItLooksOtherwise(box: HTMLElement, onTheme: () => void, onWidth: () => void): () => void {
  const sized = new ResizeObserver(onWidth);
  sized.observe(box);
  const themed = new MutationObserver(onTheme);
  themed.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", onTheme);
  return () => {
    sized.disconnect();
    themed.disconnect();
    dark.removeEventListener("change", onTheme);
  };
}
