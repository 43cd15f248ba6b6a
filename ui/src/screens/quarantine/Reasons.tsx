import { Badge } from "@/kit/Badge";
import { whole } from "@/kit/numbers";

export interface Reason {
  /** What becomes of such rows, such as `rejected`. */
  class: string;
  code: string;
  rows: number;
  means: string;
  remedy: string;
}

interface ReasonsProps {
  reasons: readonly Reason[];
  chosen: string;
  /** "" asks for all rows that left. */
  onChoose: (code: string) => void;
}

/** Why rows left: class by class, code by code, what each means and what to do about it. */
export function Reasons({ reasons, chosen, onChoose }: ReasonsProps) {
  const classes = [...new Set(reasons.map((reason) => reason.class))];
  return (
    <nav aria-label="Why rows leave">
      <ul className="reasons">
        {classes.map((name) => (
          <li key={name}>
            <Badge tone={name === "rejected" ? "bad" : "warn"}>{name}</Badge>
            <ul>
              {reasons
                .filter((reason) => reason.class === name)
                .map((reason) => (
                  <OneReason
                    key={reason.code}
                    reason={reason}
                    isChosen={chosen === reason.code}
                    onChoose={() => onChoose(chosen === reason.code ? "" : reason.code)}
                  />
                ))}
            </ul>
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface OneReasonProps {
  reason: Reason;
  isChosen: boolean;
  onChoose: () => void;
}

function OneReason({ reason, isChosen, onChoose }: OneReasonProps) {
  const { code, rows, means, remedy } = reason;
  return (
    <li>
      <button type="button" className="plain reason" aria-pressed={isChosen} onClick={onChoose}>
        {code} <span className="number">{whole(rows)}</span>
      </button>
      {isChosen ? (
        <p className="quiet">
          {means} {remedy}
        </p>
      ) : null}
    </li>
  );
}
