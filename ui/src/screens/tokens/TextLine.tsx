import { memo } from "react";
import { useActiveIn } from "./cursor";
import type { Line } from "./lines";
import { visible } from "./shown";
import { markOf } from "./whys";

interface Piece {
  /** The token that the characters are shown as. */
  place: number;
  text: string;
}

/** A line of the rendered text, each stretch of it linked with the token that it is a part of. */
export const TextLine = memo(function TextLine({ line }: { line: Line }) {
  const active = useActiveIn(line);
  return (
    <div className={active === -2 ? "text-line pointed" : "text-line"}>
      {piecesOf(line).map(({ place, text }) => {
        const fact = line.segment.fact(place);
        const isActive = active >= 0 && sharesPiece(line, place, active - line.segment.first);
        const ends = text.endsWith("\n");
        return (
          <span
            key={place}
            className={`piece ${markOf(fact)} kind-${fact.kind}${fact.isControl ? " control" : ""}${isActive ? " active" : ""}`}
            data-at={fact.position}
          >
            {visible(ends ? text.slice(0, -1) : text, "kept")}
            {ends ? <span className="line-end">↵</span> : null}
          </span>
        );
      })}
    </div>
  );
});

/** The characters of a line, token by token; a token all of whose characters the one before it shows has none. */
export function piecesOf({ segment, from, to, start = 0, end = 0 }: Line): Piece[] {
  const pieces: Piece[] = [];
  for (let place = from; place < to; place += 1) {
    const low = Math.max(segment.from(place), start);
    const high = Math.min(segment.upTo[place] ?? 0, end);
    if (low < high) pieces.push({ place, text: segment.text.slice(low, high) });
  }
  return pieces;
}

/** Whether a token is shown in the piece of another, whose characters it shares. */
function sharesPiece({ segment }: Line, shown: number, asked: number): boolean {
  if (shown === asked) return true;
  let place = asked;
  while (place > 0 && segment.from(place) >= (segment.upTo[place] ?? 0)) place -= 1;
  return place === shown;
}
