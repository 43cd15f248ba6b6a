import { memo } from "react";
import { levelOf } from "./costs";
import { useActiveIn } from "./cursor";
import type { Line } from "./lines";
import type { Fact } from "./reading";
import { shownToken } from "./shown";
import { markOf } from "./whys";

/** A line of tokens. Whatever a token is told to be stands in its attributes as well. */
export const TokenLine = memo(function TokenLine({ line }: { line: Line }) {
  const active = useActiveIn(line);
  const tokens = [];
  for (let place = line.from; place < line.to; place += 1) tokens.push(line.segment.fact(place));
  return (
    <div className={active === -2 ? "token-line pointed" : "token-line"}>
      {tokens.map((fact) => (
        <Token
          key={fact.position}
          fact={fact}
          isActive={fact.position === active}
          isFirst={fact.place === 0}
        />
      ))}
    </div>
  );
});

interface TokenProps {
  fact: Fact;
  isActive: boolean;
  isFirst: boolean;
}

function Token({ fact, isActive, isFirst }: TokenProps) {
  const { weight } = fact;
  const isWeighed = weight !== null && weight !== 0 && weight !== 1;
  return (
    <span
      className={classesOf(fact, isActive, isFirst)}
      data-at={fact.position}
      data-position={fact.place}
      data-part={fact.part ?? "cut"}
      data-id={fact.id}
      data-label={fact.label}
      data-weight={weight}
      data-trained={fact.isTrained}
      data-kind={fact.kind}
      data-message={fact.message}
      data-why={fact.why}
      data-control={fact.isControl}
      data-nats={fact.nats}
    >
      {shownToken(fact.text, fact.bytes)}
      {isWeighed ? <sub>{weight.toPrecision(2)}</sub> : null}
    </span>
  );
}

function classesOf(fact: Fact, isActive: boolean, isFirst: boolean): string {
  const classes = ["token", markOf(fact), `kind-${fact.kind}`];
  if (fact.isControl) classes.push("control");
  if (isFirst) classes.push("border");
  if (fact.nats !== null) classes.push("scored", `cost-${levelOf(fact.nats)}`);
  if (isActive) classes.push("active");
  return classes.join(" ");
}
