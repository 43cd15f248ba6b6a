import { Asked } from "@/kit/Asked";
import { Histogram } from "@/kit/Histogram";
import { share, whole } from "@/kit/numbers";
import { barsOf, filterOf, type Measure } from "./bars";
import { type Filters, type Profile, useProfile } from "./rows";

interface ProfilePanelProps {
  name: string;
  filters: Filters;
  onFilter: (change: Filters) => void;
}

const MEASURES: readonly Measure[] = ["turns", "characters"];

/** What the rows are like; whatever is clicked becomes a filter of the list below. */
export function ProfilePanel({ name, filters, onFilter }: ProfilePanelProps) {
  const profile = useProfile(name);
  return (
    <section aria-label="What the rows are like">
      <h2>What the rows are like</h2>
      <Asked query={profile} what="the rows, to count them">
        {(found) => (
          <>
            <p>
              {whole(found.accepted)} of {whole(found.rows)} rows are chats that can be learned from (
              {share(found.accepted, found.rows)}).
              {found.complete
                ? null
                : " There are more rows: these were looked at within the server's limits."}
            </p>
            <div className="profile">
              {MEASURES.map((measure) => (
                <Histogram
                  key={measure}
                  title={`Rows by ${measure}`}
                  bars={barsOf(measure, found[measure], filters)}
                  onChoose={(place) => onFilter(filterOf(measure, found[measure], place, filters))}
                />
              ))}
              <Counted
                title="Rows that would leave, by code"
                counts={found.codes}
                chosen={filters.code}
                onChoose={(code) => onFilter({ code })}
                none="None."
              />
              <Counted
                title="Rows by source"
                counts={found.sources}
                chosen={filters.source}
                onChoose={(source) => onFilter({ source })}
                none="None."
              />
              <Kinds profile={found} filters={filters} onFilter={onFilter} />
            </div>
          </>
        )}
      </Asked>
    </section>
  );
}

interface CountedProps {
  title: string;
  counts: Record<string, number>;
  chosen: string | undefined;
  /** "" asks for all again. */
  onChoose: (value: string) => void;
  none: string;
}

function Counted({ title, counts, chosen, onChoose, none }: CountedProps) {
  const entries = Object.entries(counts).sort(([, one], [, other]) => other - one);
  return (
    <section className="panel counted" aria-label={title}>
      <strong>{title}</strong>
      {entries.length === 0 ? <p className="quiet">{none}</p> : null}
      <ul>
        {entries.map(([value, count]) => (
          <li key={value}>
            <button
              type="button"
              className="plain"
              aria-pressed={chosen === value}
              onClick={() => onChoose(chosen === value ? "" : value)}
            >
              {value}
            </button>
            <span className="number">{whole(count)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

const KINDS = {
  reasoning: "with reasoning",
  calls: "with tool calls",
  tools: "with tool definitions",
} as const;

function Kinds({
  profile,
  filters,
  onFilter,
}: {
  profile: Profile;
  filters: Filters;
  onFilter: (change: Filters) => void;
}) {
  const counts = { ...profile.kinds } as Record<keyof typeof KINDS, number>;
  return (
    <section className="panel counted" aria-label="Rows by kind">
      <strong>Rows by kind and speaker</strong>
      <ul>
        {Object.entries(KINDS).map(([kind, said]) => {
          const name = kind as keyof typeof KINDS;
          return (
            <li key={kind}>
              <button
                type="button"
                className="plain"
                aria-pressed={filters[name] === "true"}
                onClick={() => onFilter({ [name]: filters[name] === "true" ? "" : "true" })}
              >
                {said}
              </button>
              <span className="number">{whole(counts[name])}</span>
            </li>
          );
        })}
        {Object.entries(profile.roles).map(([role, count]) => (
          <li key={role}>
            <button
              type="button"
              className="plain"
              aria-pressed={filters.role === role}
              onClick={() => onFilter({ role: filters.role === role ? "" : role })}
            >
              {role}
            </button>
            <span className="number">{whole(count)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
