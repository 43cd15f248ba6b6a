import { useSyncExternalStore } from "react";
import { useCursor } from "./cursor";
import type { Reading } from "./reading";
import { shownToken } from "./shown";
import { markOf } from "./whys";

/** Says the token that the keys went to, for whoever cannot see it. */
export function Spoken({ reading }: { reading: Reading }) {
  const cursor = useCursor();
  const position = useSyncExternalStore(cursor.subscribe, () => cursor.position);
  const fact = position !== null && position < reading.count ? reading.fact(position) : null;
  return (
    <p className="visually-hidden" role="status">
      {fact
        ? `Token ${fact.place}, ${shownToken(fact.text, fact.bytes)}, ${markOf(fact)}, ${fact.kind}${fact.message === null ? "" : ` of message ${fact.message}`}`
        : ""}
    </p>
  );
}
