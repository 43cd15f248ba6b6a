/** How curves are drawn: what uPlot is told. */
import type uPlot from "uplot";
import type { Series } from "./metrics";

/** A step that is pointed out. */
export interface Mark {
  step: number;
  name: string;
}

export const HEIGHT = 260;
/** Curves are told apart by their dashes, too. */
const DASHES = [[], [6, 4], [2, 3], [10, 4, 2, 4], [14, 4], [4, 8]];
const HUES = [212, 28, 150, 330, 262, 0];
const BRIGHT = 382;
const FONT = "12px system-ui, sans-serif";

interface Drawn {
  /** Where it is drawn; its own colours are those of the theme. */
  box: HTMLElement;
  series: readonly Series[];
  format: (value: number) => string;
  mark: { readonly current: Mark | null };
}

export function plotOptions({ box, series, format, mark }: Drawn): uPlot.Options {
  const { color: ink, borderTopColor: line } = getComputedStyle(box);
  const light = isBright(ink) ? 70 : 34; // ink that is bright stands on dark ground
  const axis = {
    stroke: ink,
    font: FONT,
    labelFont: FONT,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line },
  };
  return {
    width: box.clientWidth || 600,
    height: HEIGHT,
    scales: { x: { time: false } },
    axes: [
      { ...axis, label: "step" },
      { ...axis, size: 66, values: (_, ticks) => ticks.map(format) },
    ],
    series: [
      { label: "step" },
      ...series.map(({ name }, index) => ({
        label: name,
        stroke: `hsl(${HUES[index % HUES.length]} 65% ${light}%)`,
        width: 2,
        dash: DASHES[index % DASHES.length] ?? [],
        spanGaps: true,
        value: (_: uPlot, value: number | null) => (value === null ? "–" : format(value)),
      })),
    ],
    hooks: { draw: [(plot) => drawMark(plot, mark.current, ink)] },
  };
}

/** Whether a computed colour, `rgb(r, g, b)`, is nearer to white than to black. */
function isBright(colour: string): boolean {
  const parts = colour.match(/\d+(\.\d+)?/g) ?? [];
  return parts.slice(0, 3).reduce((sum, part) => sum + Number(part), 0) > BRIGHT;
}

function drawMark(plot: uPlot, mark: Mark | null, colour: string): void {
  if (!mark) return;
  const x = Math.round(plot.valToPos(mark.step, "x", true));
  const { top, left, width, height } = plot.bbox;
  const { ctx } = plot;
  ctx.save();
  ctx.strokeStyle = colour;
  ctx.fillStyle = colour;
  ctx.setLineDash([4, 4]);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
  ctx.textAlign = x > left + width / 2 ? "right" : "left";
  ctx.fillText(`  ${mark.name}  `, x, top + 14 * devicePixelRatio);
  ctx.restore();
}
