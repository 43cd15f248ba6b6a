import { type FormEvent, type ReactNode, useState } from "react";
import { ProblemBox } from "@/kit/ProblemBox";

interface ReplayFormProps {
  repairs: readonly { name: string; summary?: string }[];
  /** null: no dialect can be chosen. */
  dialects: readonly string[] | null;
  isBusy: boolean;
  error: unknown;
  onReplay: (repairs: string[], dialect: string | null) => void;
  children: ReactNode;
}

/** Which repairs, or which dialect, the rows are checked with once more; nothing is written. */
export function ReplayForm({ repairs, dialects, isBusy, error, onReplay, children }: ReplayFormProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [dialect, setDialect] = useState("");
  const toggle = (name: string) =>
    setChosen((before) => (before.includes(name) ? before.filter((one) => one !== name) : [...before, name]));
  const submit = (event: FormEvent) => {
    event.preventDefault();
    onReplay([...chosen], dialect || null);
  };
  return (
    <form className="panel stack" onSubmit={submit} aria-label="Replay">
      <strong>What would pass with these repairs?</strong>
      <fieldset className="repairs">
        <legend>Repairs, made in the order in which they are chosen</legend>
        {repairs.map(({ name, summary }) => (
          <label key={name}>
            <input type="checkbox" checked={chosen.includes(name)} onChange={() => toggle(name)} />
            <span>
              {name}
              {chosen.includes(name) ? ` (${chosen.indexOf(name) + 1})` : ""}
              {summary ? <small> {summary}</small> : null}
            </span>
          </label>
        ))}
      </fieldset>
      {dialects ? (
        <label className="row">
          Dialect
          <select value={dialect} onChange={(event) => setDialect(event.target.value)}>
            <option value="">as it is</option>
            {dialects.map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
      ) : null}
      <div className="row">
        <button type="submit" className="primary" disabled={isBusy}>
          {isBusy ? "Replaying …" : "Replay"}
        </button>
        <small>Nothing is written.</small>
      </div>
      {error ? <ProblemBox error={error} /> : null}
      {children}
    </form>
  );
}
