import type { ReactNode } from "react";
import type { Named } from "./useAbout";
import type { Choice, Viewing } from "./viewing";

interface SwitcherProps {
  viewing: Viewing;
  about: Named | undefined;
}

const CHOICES: Partial<Record<keyof Choice, { title: string; values: Record<string, string> }>> = {
  history: { title: "History", values: { "": "final", auto: "auto", "per-turn": "per-turn" } },
  overflow: { title: "Overflow", values: { "": "cut", drop: "drop", continue: "continue" } },
  turns: { title: "Turns", values: { "": "all", last: "last" } },
  reasoning: { title: "Reasoning", values: { "": "trains", false: "does not train" } },
  score: { title: "Cost of tokens", values: { "": "not asked", true: "asked of the model" } },
  observations: { title: "Results of tools", values: { "": "do not train", true: "train" } },
};

/** What the row is put under: a model, a template, another one beside it, and the options of `explain`. */
export function Switcher({ viewing: { choice, change }, about }: SwitcherProps) {
  const templates = about?.templates ?? [];
  const own = choice.model ? "the model's own" : "(choose one)";
  return (
    <form
      className="switcher"
      aria-label="What the row is put under"
      onSubmit={(event) => event.preventDefault()}
    >
      <Pick
        title="Model"
        value={choice.model}
        values={{ "": "none: text alone", ...named(about?.models ?? []) }}
        onChange={(model) =>
          change({ model, ...(model || choice.template ? {} : { template: templates[0] ?? "" }) })
        }
      />
      <Pick
        title="Template"
        value={choice.template}
        values={{ "": own, ...named(templates) }}
        onChange={(template) => change({ template })}
      />
      <Pick
        title="Beside it"
        value={choice.against}
        values={{ "": "nothing", ...(choice.model ? { own: "the model's own" } : {}), ...named(templates) }}
        onChange={(against) => change({ against })}
      />
      <details>
        <summary>Options</summary>
        <div className="switcher">
          {Object.entries(CHOICES).map(([name, { title, values }]) => (
            <Pick
              key={name}
              title={title}
              value={choice[name as keyof Choice]}
              values={values}
              onChange={(value) => change({ [name]: value })}
            />
          ))}
          <Labelled title="max_tokens">
            <input
              type="number"
              min={1}
              step={1}
              placeholder="as usual"
              defaultValue={choice.max_tokens ?? ""}
              onBlur={(event) => change({ max_tokens: event.target.value })}
              onKeyDown={(event) =>
                event.key === "Enter" && change({ max_tokens: event.currentTarget.value })
              }
            />
          </Labelled>
        </div>
      </details>
    </form>
  );
}

function named(names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, name]));
}

interface PickProps {
  title: string;
  value: string | undefined;
  values: Record<string, string>;
  onChange: (value: string) => void;
}

function Pick({ title, value = "", values, onChange }: PickProps) {
  const isKnown = value in values;
  return (
    <Labelled title={title}>
      <select value={value} onChange={(event) => onChange(event.target.value)}>
        {isKnown ? null : <option value={value}>{value}</option>}
        {Object.entries(values).map(([one, said]) => (
          <option key={one} value={one}>
            {said}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

function Labelled({ title, children }: { title: string; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is what it is given
    <label className="labelled">
      <span>{title}</span>
      {children}
    </label>
  );
}
