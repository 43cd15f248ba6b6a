import type { UseQueryResult } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Asked } from "@/kit/Asked";
import { share, whole } from "@/kit/numbers";
import { countsOf, totalsOf } from "./counts";
import { Cursor, CursorContext } from "./cursor";
import { useMarkClasses } from "./Legend";
import { TextPane, TokenPane } from "./ReadingPanes";
import type { Reading } from "./reading";
import { useTokenKeys } from "./useTokenKeys";
import { WhyPanel } from "./WhyPanel";

interface SideBySideProps {
  left: { title: string; reading: Reading };
  right: { title: string; query: UseQueryResult<Reading> };
}

/** The row under two templates: pointing at a message in one shows it in the other. */
export function SideBySide({ left, right }: SideBySideProps) {
  const [here] = useState(() => new Cursor());
  const [there] = useState(() => new Cursor());
  const [shows, setShows] = useState<"text" | "tokens">("tokens");
  const marks = useMarkClasses();
  useTokenKeys(left.reading, here);
  useEffect(() => {
    const stops = [follows(here, there), follows(there, here)];
    return () => {
      for (const stop of stops) stop();
    };
  }, [here, there]);
  return (
    <>
      <fieldset className="row choices">
        <legend className="visually-hidden">What is shown beside each other</legend>
        {(["tokens", "text"] as const).map((one) => (
          <button key={one} type="button" aria-pressed={shows === one} onClick={() => setShows(one)}>
            {one}
          </button>
        ))}
      </fieldset>
      <div className={`panes two ${marks}`}>
        <CursorContext value={here}>
          <Side title={left.title} reading={left.reading} shows={shows} />
        </CursorContext>
        <CursorContext value={there}>
          <Asked query={right.query} what="the other template">
            {(reading) => <Side title={right.title} reading={reading} shows={shows} />}
          </Asked>
        </CursorContext>
      </div>
    </>
  );
}

/** Whatever message one cursor is at, the other points at, too. */
function follows(from: Cursor, to: Cursor): () => void {
  return from.subscribe(() => {
    const { message } = from.active;
    if (message !== to.active.message)
      to.hover(message === null ? null : { position: null, message }, "keys");
  });
}

function Side({ title, reading, shows }: { title: string; reading: Reading; shows: "text" | "tokens" }) {
  const { tokens, trained, cut } = totalsOf(countsOf(reading));
  const unit = reading.hasTokens ? "tokens" : "spans";
  const { code } = reading.explained;
  return (
    <div className="pane">
      <h2>{title}</h2>
      <p className="quiet">
        {code ? `leaves with ${code}; ` : ""}
        {whole(tokens)} {unit}, {whole(trained)} train ({share(trained, tokens)})
        {cut > 0 ? `, ${whole(cut)} cut` : ""}
      </p>
      {shows === "tokens" && reading.hasTokens ? (
        <TokenPane reading={reading} />
      ) : (
        <TextPane reading={reading} />
      )}
      <WhyPanel reading={reading} />
    </div>
  );
}
