import { bytes } from "@/kit/numbers";
import type { Row } from "./row";
import { pretty } from "./turns";
import "./conversation.css";

const MOST = 200_000;

/** The row as it lies in the file. */
export function RawText({ row }: { row: Pick<Row, "raw" | "bytes" | "truncated"> }) {
  const shown = row.raw.length > MOST ? row.raw.slice(0, MOST) : pretty(row.raw);
  const isWhole = !row.truncated && row.raw.length <= MOST;
  return (
    <figure className="raw">
      <figcaption className="quiet">
        As it lies in the file, {bytes(row.bytes)}
        {isWhole ? "" : "; only its beginning is shown"}
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which a keyboard must be able to do */}
      <pre tabIndex={0}>{shown}</pre>
    </figure>
  );
}
