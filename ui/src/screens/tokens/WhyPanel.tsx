import { Badge } from "@/kit/Badge";
import { Facts } from "@/kit/Facts";
import { costSaid } from "./costs";
import { useActive } from "./cursor";
import type { Fact, Reading } from "./reading";
import { shownToken } from "./shown";
import { KINDS, markOf, whyOf, whyOfTurn } from "./whys";

/** What the token under the cursor is, who wrote it, and why it trains or not. */
export function WhyPanel({ reading }: { reading: Reading }) {
  const { position, message } = useActive();
  if (position === null || position >= reading.count)
    return message === null ? (
      <section className="why panel" aria-label="Why">
        <p className="quiet">
          Point at a token, or move with <kbd>←</kbd> <kbd>→</kbd> <kbd>↑</kbd> <kbd>↓</kbd>; <kbd>[</kbd>{" "}
          <kbd>]</kbd> step through messages, <kbd>t</kbd> goes to the next tokens that train.
        </p>
      </section>
    ) : (
      <OfMessage reading={reading} message={message} />
    );
  return <OfToken fact={reading.fact(position)} reading={reading} />;
}

function OfMessage({ reading, message }: { reading: Reading; message: number }) {
  const turn = reading.explained.turns.find((one) => one.message === message);
  return (
    <section className="why panel" aria-label="Why">
      <h2>
        Message {message}, {turn?.role}
      </h2>
      {turn ? (
        <p>
          <Badge tone={turn.trained ? "good" : "neutral"}>{turn.trained ? "trains" : turn.why}</Badge>{" "}
          {whyOfTurn(turn.why)}
        </p>
      ) : null}
    </section>
  );
}

const MARKS = { trained: "trained", masked: "not trained", cut: "truncated" } as const;

function OfToken({ fact, reading }: { fact: Fact; reading: Reading }) {
  const turn = reading.explained.turns.find((one) => one.message === fact.message);
  const mark = markOf(fact);
  const most = reading.explained.max_tokens;
  return (
    <section className="why panel" aria-label="Why">
      <h2>
        <code>{shownToken(fact.text, fact.bytes)}</code>{" "}
        <Badge tone={mark === "trained" ? "good" : mark === "cut" ? "warn" : "neutral"}>{MARKS[mark]}</Badge>
      </h2>
      <p>
        {whyOf(fact)}
        {fact.why === "cut" && most ? ` An example has at most ${most.toLocaleString("en")} tokens.` : ""}
      </p>
      <Facts
        of={{
          Why: fact.why ? <code>{fact.why}</code> : null,
          Kind: `${fact.kind}: ${KINDS[fact.kind] ?? ""}`,
          Message: fact.message === null ? "none: the template's" : `#${fact.message} ${turn?.role ?? ""}`,
          Id: fact.id,
          Label: fact.label,
          Weight: fact.weight,
          Cost: fact.nats === null ? null : costSaid(fact.nats),
          Position: `${fact.place}${fact.part === null ? " of what is cut" : ` in example ${fact.part}`}`,
          Control: fact.isControl ? "a control token" : null,
          Bytes: fact.bytes?.match(/../g)?.join(" "),
        }}
      />
    </section>
  );
}
