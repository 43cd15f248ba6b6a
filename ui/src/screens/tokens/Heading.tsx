import { memo } from "react";
import { whole } from "@/kit/numbers";
import { useActiveIn } from "./cursor";
import type { Line } from "./lines";
import type { Reading } from "./reading";

/** The line above the tokens of a message, or above those of a part. */
export const Heading = memo(function Heading({ line, reading }: { line: Line; reading: Reading }) {
  const active = useActiveIn(line);
  const { segment } = line;
  const trained = countTrained(line);
  const of = `${whole(line.to - line.from)} ${reading.hasTokens ? "tokens" : "spans"}`;
  if (line.kind === "part")
    return (
      <div className="part-heading">
        {segment.part === null
          ? `cut: no example has these ${of}`
          : `example ${segment.part}: ${of}, ${whole(trained)} train`}
      </div>
    );
  const turn = reading.explained.turns.find(({ message }) => message === line.message);
  return (
    <div className={active === -1 ? "turn-heading" : "turn-heading pointed"} data-message={line.message}>
      <strong>{line.message === null ? "template" : `#${line.message} ${turn?.role ?? ""}`}</strong> {of},{" "}
      {whole(trained)} train
      {turn ? <span className="quiet"> · {turn.why}</span> : null}
    </div>
  );
});

function countTrained({ segment, from, to }: Line): number {
  let count = 0;
  for (let place = from; place < to; place += 1) count += Number(segment.isTrained(place));
  return count;
}
