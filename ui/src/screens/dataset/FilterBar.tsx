import { type FormEvent, useEffect, useState } from "react";
import { FILTERS, type Filters } from "./rows";

interface FilterBarProps {
  filters: Filters;
  onFilter: (change: Filters) => void;
}

const SAID: Partial<Record<string, string>> = {
  q: "says",
  min_turns: "turns from",
  max_turns: "turns to",
  min_characters: "characters from",
  max_characters: "characters to",
};

/** What is searched for, and every filter that is in force, each with a button that lifts it. */
export function FilterBar({ filters, onFilter }: FilterBarProps) {
  const [typed, setTyped] = useState(filters.q ?? "");
  useEffect(() => setTyped(filters.q ?? ""), [filters.q]);
  const search = (event: FormEvent) => {
    event.preventDefault();
    onFilter({ q: typed });
  };
  const inForce = FILTERS.filter((name) => filters[name] !== undefined);
  return (
    <section aria-label="Which rows">
      <h2>Rows</h2>
      <form className="row" onSubmit={search}>
        <input
          type="search"
          aria-label="Search in what is said"
          placeholder="Search in what is said"
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
        <button type="submit">Search</button>
        {inForce.map((name) => (
          <button key={name} type="button" onClick={() => onFilter({ [name]: "" })}>
            {SAID[name] ?? name}: {filters[name]} <span aria-hidden="true">✕</span>
            <span className="visually-hidden">, lift</span>
          </button>
        ))}
        {inForce.length > 1 ? (
          <button
            type="button"
            onClick={() => onFilter(Object.fromEntries(inForce.map((name) => [name, ""])) as Filters)}
          >
            Show all
          </button>
        ) : null}
      </form>
    </section>
  );
}
